#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model.h"
#include "io/base/mapped_file.h"

namespace sheaf {

/// One tensor as it lies in the file.
struct GgufTensor {
  std::string name;
  uint32_t type = 0;           ///< ggml's number of the type
  std::optional<DType> dtype;  ///< empty: a type sheaf does not read; see ggml_type_name
  std::vector<int64_t> shape;  ///< outermost first: [rows, cols] of a matrix
  uint64_t offset = 0;         ///< from the start of the file
  uint64_t size = 0;           ///< bytes; 0 where ggml's type is unknown
  const std::byte* data = nullptr;
};

/// "Q4_1", "IQ2_XS", "type 99".
std::string ggml_type_name(uint32_t type);

/// A GGUF v2 or v3 file, mapped. Opening checks every count, length and offset of the header against the
/// file. Copies share the mapping; string views stay valid as long as any copy does.
class GgufFile {
 public:
  static GgufFile open(const std::string& path);

  const std::string& path() const { return file_->path(); }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  uint32_t version() const { return version_; }

  bool has(std::string_view key) const { return values_.find(key) != values_.end(); }
  std::vector<std::string> keys() const;

  // Each getter refuses a missing key and a value of another kind, naming both kinds; the second form gives
  // `fallback` for a missing key only.
  std::string_view string(std::string_view key) const;
  std::string_view string(std::string_view key, std::string_view fallback) const;
  uint64_t uint(std::string_view key) const;  ///< any integer type, not negative
  uint64_t uint(std::string_view key, uint64_t fallback) const;
  int64_t integer(std::string_view key) const;  ///< any integer type
  int64_t integer(std::string_view key, int64_t fallback) const;
  double number(std::string_view key) const;  ///< any integer or float type
  double number(std::string_view key, double fallback) const;
  bool boolean(std::string_view key) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::vector<std::string_view> strings(std::string_view key) const;
  std::vector<float> floats(std::string_view key) const;
  std::vector<int64_t> ints(std::string_view key) const;  ///< an array of any integer type, or of booleans

  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  /// Null where there is none.
  const GgufTensor* find_tensor(std::string_view name) const;

 private:
  enum class Kind : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
  struct Value {
    Kind kind = Kind::u8;
    Kind element = Kind::u8;          // of an array
    uint64_t count = 0;               // elements of an array, bytes of a string
    const std::byte* data = nullptr;  // first element; of strings, the first length field
  };
  class Reader;
  friend class Reader;

  static const char* kind_name(Kind kind);
  static uint64_t kind_bytes(Kind kind);
  static bool is_integer(Kind kind);
  static std::string describe(const Value& value);
  static double read_number(Kind kind, const std::byte* data);
  const Value& value(std::string_view key) const;
  int64_t read_integer(std::string_view key, Kind kind, const std::byte* data) const;
  [[noreturn]] void wrong_kind(std::string_view key, const Value& value, const char* wanted) const;

  std::shared_ptr<const MappedFile> file_;
  uint32_t version_ = 0;
  std::map<std::string, Value, std::less<>> values_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t, std::less<>> tensor_index_;
};

}  // namespace sheaf

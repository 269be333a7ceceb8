#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer/splitting_tokenizer.h"
#include "io/base/mapped_file.h"
#include "io/model/tensor_map.h"

namespace sheaf {

/// A GGUF v2 or v3 file, mapped. Opening checks every count, length and offset of the header against the
/// file. Copies share the mapping; string views stay valid as long as any copy does.
class GgufFile {
  enum class Kind : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
  struct Value {
    Kind kind = Kind::u8;
    Kind element = Kind::u8;          // of an array
    uint64_t count = 0;               // elements of an array, bytes of a string
    const std::byte* data = nullptr;  // first element; of strings, the first length field
  };

 public:
  static GgufFile open(const std::string& path);

  const std::string& path() const { return file_->path(); }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  uint32_t version() const { return version_; }

  bool has(std::string_view key) const { return values_.find(key) != values_.end(); }
  bool is_array(std::string_view key) const { return has(key) && value(key).kind == Kind::array; }
  const std::map<std::string, Value, std::less<>>& values() const { return values_; }

  // Each getter refuses a missing key and a value of another kind, naming both kinds; the second form gives
  // `fallback` for a missing key only.
  std::string_view string(std::string_view key) const;
  std::string_view string(std::string_view key, std::string_view fallback) const {
    return has(key) ? string(key) : fallback;
  }
  uint64_t uint(std::string_view key) const;  ///< any integer type, not negative
  uint64_t uint(std::string_view key, uint64_t fallback) const { return has(key) ? uint(key) : fallback; }
  int64_t integer(std::string_view key) const;  ///< any integer type
  double number(std::string_view key) const;    ///< any integer or float type
  bool boolean(std::string_view key) const;
  bool boolean(std::string_view key, bool fallback) const { return has(key) ? boolean(key) : fallback; }
  std::vector<std::string_view> strings(std::string_view key) const;
  std::vector<float> floats(std::string_view key) const;
  std::vector<int64_t> ints(std::string_view key) const;  ///< an array of any integer type, or of booleans

  /// Of a type that sheaf does not know, the size is 0.
  const std::map<std::string, FileTensor, std::less<>>& tensors() const { return tensors_; }
  /// Null where there is none.
  const FileTensor* find_tensor(std::string_view name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second;
  }

 private:
  class Reader;
  friend class Reader;

  /// What is known of a kind of values.
  struct KindFacts {
    const char* name;
    uint64_t bytes = 0;  ///< 0 for strings and arrays, whose size is in the file
    bool integer = false;
    double (*number)(const std::byte* data) = nullptr;
    int64_t (*whole_number)(const std::byte* data) = nullptr;
  };
  template <class T>
  static constexpr KindFacts facts_of(const char* name);
  static const KindFacts& facts(Kind kind);

  const Value& value(std::string_view key) const;
  int64_t read_integer(std::string_view key, Kind kind, const std::byte* data) const;
  [[noreturn]] void wrong_kind(std::string_view key, const Value& value, const char* wanted) const;

  std::shared_ptr<const MappedFile> file_;
  uint32_t version_ = 0;
  std::map<std::string, Value, std::less<>> values_;
  std::map<std::string, FileTensor, std::less<>> tensors_;
};

/// Builds the tokenizer inside a GGUF file: kinds `gpt2` (byte-level BPE, by its `pre` type) and `llama`
/// (SentencePiece BPE). Refuses other kinds, naming them.
std::unique_ptr<SplittingTokenizer> read_gguf_tokenizer(const GgufFile& file);

}  // namespace sheaf

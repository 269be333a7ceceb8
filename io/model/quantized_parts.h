#pragma once
#include <bit>
#include <cstring>
#include <fmt/ranges.h>
#include <optional>

#include "core/base/error.h"
#include "core/model/scaled_blocks.h"
#include "io/model/quantization.h"

namespace sheaf {

inline void put_scale(std::byte* block, float scale, uint32_t zero_point = 0) {
  const uint32_t bits = std::bit_cast<uint32_t>(scale) | zero_point;
  std::memcpy(block, &bits, sizeof bits);
}

inline uint32_t word_at(const FileTensor& tensor, int64_t index) {
  return load_value<uint32_t>(tensor.data + 4 * index);
}
inline float float_at(const FileTensor& tensor, int64_t index) {
  float value = 0;
  to_f32(*tensor.dtype, tensor.data + index * block_bytes(*tensor.dtype), 1, &value);
  return value;
}

/// The tensors that make up the weight of one linear layer.
class QuantizedParts {
 public:
  QuantizedParts(TensorMap& tensors, std::string module, int64_t rows, int64_t cols)
      : tensors_(tensors), module_(std::move(module)), rows_(rows), cols_(cols) {}

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  std::string name(const char* part) const { return module_ + "." + part; }
  bool has(const char* part) const { return tensors_.has(name(part)); }
  void ignore(std::initializer_list<const char*> parts) const {
    for (const char* part : parts) tensors_.ignore(name(part));
  }

  FileTensor words(const char* part, int64_t first, int64_t second) const {
    return shaped(part, {"I32", "U32"}, {first, second});
  }
  /// Scales in 16 bits: they leave room for a zero point.
  FileTensor scales(const char* part, int64_t first, int64_t second) const {
    return shaped(part, {"F16", "BF16"}, {first, second});
  }
  FileTensor raw(const char* part, std::initializer_list<std::string_view> types) const {
    return tensors_.take_raw(name(part), types);
  }
  std::string source(const char* part) const { return tensors_.source() + ": tensor " + name(part); }
  FileTensor shaped(const char* part, std::initializer_list<std::string_view> types,
                    const std::vector<int64_t>& shape) const {
    FileTensor tensor = tensors_.take_raw(name(part), types);
    if (tensor.shape != shape) wrong_shape(part, tensor, fmt::format("[{}]", fmt::join(shape, ", ")));
    return tensor;
  }
  [[noreturn]] void wrong_shape(const char* part, const FileTensor& tensor, const std::string& needed) const {
    refuse("{}: tensor {} has shape [{}], but the model's description needs {}", tensors_.source(),
           name(part), fmt::join(tensor.shape, ", "), needed);
  }
  template <class... Args>
  [[noreturn]] void bad(const char* part, fmt::format_string<Args...> text, Args&&... args) const {
    refuse("{}: tensor {} {}", tensors_.source(), name(part), fmt::format(text, std::forward<Args>(args)...));
  }

  /// The matrix that `read` puts together; a row is made of `row_bytes` of `values`, or (0) of any of them.
  Matrix made(const char* part, DType dtype, const FileTensor& values, int64_t row_bytes,
              decltype(StoredRows::read) read) const {
    Matrix matrix;
    matrix.name = name(part);
    matrix.file = tensors_.all().at(matrix.name).file;
    matrix.dtype = dtype;
    matrix.rows = rows_;
    matrix.cols = cols_;
    matrix.source = std::make_shared<StoredRows>(
        StoredRows{std::move(read), matrix.name, values.data, static_cast<int64_t>(values.size), row_bytes});
    return matrix;
  }

 private:
  TensorMap& tensors_;
  std::string module_;
  int64_t rows_, cols_;
};

/// Each is empty where the layer is not stored so.
std::optional<Matrix> take_fp8(const QuantizedParts& parts, const Quantization& quantization);
std::optional<Matrix> take_int4(const QuantizedParts& parts, const Quantization& quantization);
std::optional<Matrix> take_nf4(const QuantizedParts& parts);

}  // namespace sheaf

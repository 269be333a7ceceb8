#pragma once
#include <cstring>
#include <fmt/ranges.h>
#include <functional>
#include <numeric>
#include <optional>

#include "core/base/error.h"
#include "core/model/scaled_blocks.h"
#include "io/model/quantization.h"
#include "io/model/tensor_map.h"

namespace sheaf {

inline uint32_t word_at(const FileTensor& tensor, int64_t index) {
  uint32_t word = 0;
  std::memcpy(&word, tensor.data + 4 * index, sizeof word);
  return word;
}
inline float float_at(const FileTensor& tensor, int64_t index) {
  float value = 0;
  to_f32(*tensor.dtype, tensor.data + index * block_bytes(*tensor.dtype), 1, &value);
  return value;
}
inline int64_t count(const FileTensor& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, std::multiplies<>());
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

  Matrix made(const char* part, DType dtype, std::shared_ptr<const StoredRows> source) const {
    Matrix matrix;
    matrix.name = name(part);
    matrix.file = tensors_.all().at(matrix.name).file;
    matrix.dtype = dtype;
    matrix.rows = rows_;
    matrix.cols = cols_;
    matrix.source = std::move(source);
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

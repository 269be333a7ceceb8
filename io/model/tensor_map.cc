#include "io/model/tensor_map.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "io/base/mapped_file.h"

namespace sheaf {

namespace {

Matrix matrix_of(const std::string& name, const FileTensor& tensor, int64_t rows, int64_t cols) {
  Matrix matrix;
  matrix.name = name;
  matrix.file = tensor.file;
  matrix.dtype = *tensor.dtype;
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.data = tensor.data;
  return matrix;
}

}  // namespace

void refuse_unless_finite(const std::string& name, const FileTensor& tensor) {
  const Matrix values = matrix_of(name, tensor, 1, tensor.values());
  if (values.cols == 0) return;
  values.page_in(0, 1);
  values.check_finite(0, 1);
}

void TensorMap::add(const std::string& name, FileTensor tensor) {
  if (tensor.file.empty()) tensor.file = source_;
  if (!tensors_.emplace(name, std::move(tensor)).second)
    refuse("{}: tensor {} appears twice", source_, shown(name));
}

const FileTensor& TensorMap::need(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) refuse("{}: tensor {} is missing", source_, name);
  return found->second;
}

const FileTensor& TensorMap::take_raw(const std::string& name,
                                      std::initializer_list<std::string_view> types) {
  const FileTensor& tensor = need(name);
  if (std::ranges::find(types, tensor.type) == types.end())
    refuse("{}: tensor {} has type {}, but {} is needed here", source_, name, tensor.type,
           fmt::join(types, " or "));
  used_.insert(name);
  if (tensor.dtype) refuse_unless_finite(name, tensor);
  return tensor;
}

Matrix TensorMap::take(const std::string& name, const std::vector<int64_t>& shape) {
  const FileTensor& tensor = need(name);
  if (tensor.shape != shape) {
    refuse("{}: tensor {} has shape [{}], but the model's description needs [{}]", source_, name,
           fmt::join(tensor.shape, ", "), fmt::join(shape, ", "));
  }
  if (!tensor.dtype) {
    refuse("{}: tensor {} has type {}, which is not supported (supported: {})", source_, name, tensor.type,
           readable_types_);
  }
  used_.insert(name);
  // Matrices of several experts in one tensor lie below each other.
  const int64_t rows = std::accumulate(shape.begin(), shape.end() - 1, int64_t{1}, std::multiplies<>());
  return matrix_of(name, tensor, rows, shape.back());
}

void TensorMap::ignore_zeros(const std::string& name) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return;
  const FileTensor& tensor = found->second;
  const bool zeros = std::all_of(tensor.data, tensor.data + tensor.size,
                                 [](std::byte byte) { return byte == std::byte{0}; });
  if (zeros) used_.insert(name);
}

void TensorMap::refuse_unused() const {
  for (const auto& [name, tensor] : tensors_) {
    if (!used_.contains(name)) {
      refuse(
          "{}: tensor {} does not belong to the described model; it may belong to a variant that is not "
          "supported",
          source_, shown(name));
    }
  }
}

}  // namespace sheaf

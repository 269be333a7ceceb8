#include "io/model/tensor_map.h"

#include <fmt/ranges.h>

#include "core/base/error.h"
#include "io/base/mapped_file.h"

namespace sheaf {

void TensorMap::add(const std::string& name, FileTensor tensor) {
  if (!tensors_.emplace(name, std::move(tensor)).second)
    refuse("{}: tensor {} appears twice", source_, shown(name));
}

Matrix TensorMap::take_shaped(const std::string& name, const std::vector<int64_t>& shape) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) refuse("{}: tensor {} is missing", source_, name);
  const FileTensor& tensor = found->second;
  if (tensor.shape != shape) {
    refuse("{}: tensor {} has shape [{}], but the model's description needs [{}]", source_, name,
           fmt::join(tensor.shape, ", "), fmt::join(shape, ", "));
  }
  if (!tensor.dtype) {
    refuse("{}: tensor {} has type {}, which is not supported (supported: {})", source_, name, tensor.type,
           readable_types_);
  }
  used_.insert(name);
  Matrix matrix;
  matrix.name = name;
  matrix.dtype = *tensor.dtype;
  matrix.rows = shape.size() == 2 ? shape[0] : 1;
  matrix.cols = shape.back();
  matrix.data = tensor.data;
  return matrix;
}

Matrix TensorMap::take(const std::string& name, int64_t rows, int64_t cols) {
  return take_shaped(name, {rows, cols});
}

Matrix TensorMap::take_vector(const std::string& name, int64_t size) {
  return take_shaped(name, {size});
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

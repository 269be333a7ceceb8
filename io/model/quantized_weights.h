#pragma once
#include <optional>
#include <string>

#include "io/model/quantization.h"
#include "io/model/tensor_map.h"

namespace sheaf {

/// The weight [rows, cols] of the linear layer `module` where it is stored in fewer bits; empty where it is a
/// plain tensor. Takes all tensors that belong to it.
std::optional<Matrix> take_quantized(TensorMap& tensors, const Quantization& quantization,
                                     const std::string& module, int64_t rows, int64_t cols);

}  // namespace sheaf

#pragma once
#include <string>
#include <vector>

#include "core/model/config.h"

namespace sheaf {

/// The description of a well-known model by name (qwen3-8b, …), for benchmarks and estimates without its
/// files; refuses an unknown name and lists the known ones.
ModelConfig shape_by_name(const std::string& name);
std::vector<std::string> shape_names();
bool is_shape(const std::string& name);

/// Multiply-adds of the matrix products of one token in all layers, the output projection not counted.
int64_t layer_weights(const ModelConfig& config);

}  // namespace sheaf

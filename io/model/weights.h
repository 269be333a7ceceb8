#pragma once
#include "core/model/model.h"
#include "io/model/family.h"
#include "io/model/lora.h"
#include "io/model/tensor_map.h"

namespace sheaf {

enum class TensorNaming { hugging_face, gguf };

/// Finds every weight of `model.config` among the tensors, checks its shape and type, and points the model at
/// it. `adapter` may be null. Tensors and adapter modules that fit nowhere are refused.
void load_weights(TensorMap& tensors, const FileConfig& description, TensorNaming naming, Adapter* adapter,
                  Model& model);

}  // namespace sheaf

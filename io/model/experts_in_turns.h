#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "io/model/tensor_map.h"

namespace sheaf {

/// Sizes of a layer's experts.
struct ExpertSizes {
  int64_t count, hidden, ffn;
};

/// Experts as gpt-oss checkpoints have them: all gates and ups of a layer in `module` + "gate_up_proj", an
/// output of each in turn, and all downs in "down_proj". Either is [experts, inputs, outputs] in 16 or 32
/// bits, or MXFP4 with "_blocks" [experts, outputs, inputs / 32, 16] and "_scales" [experts, outputs, inputs
/// / 32]. Both have a "_bias" [experts, outputs].
std::vector<ExpertWeights> take_experts_in_turns(TensorMap& tensors, const std::string& module,
                                                 const ExpertSizes& sizes);

}  // namespace sheaf

// Phi-3, Phi-3.5 and Phi-4: fused projections; a part of each head rotates; long-rope tables.
#include "io/model/families/families.h"

namespace sheaf {

constinit const Family kPhi3Family{
    .name = "phi3",
    .architecture = "Phi3ForCausalLM",
    .gguf = "phi3",
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          read_hf_rope(file, config, {.partial = true, .old_long_rope = true, .original_context = 4096});
          read_hf_windows(file, config);
        },
    .tensors = {.fused_qkv = true, .fused_gate_up = true},
};

}  // namespace sheaf

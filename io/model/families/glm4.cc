// GLM-4-0414 (9B and 32B, dense): norms around attention and MLP, biases on queries, keys and values, and the
// first half of each head rotates, in pairs of neighbours.
#include "io/model/families/families.h"

namespace sheaf {

constinit const Family kGlm4Family{
    .name = "glm4",
    .architecture = "Glm4ForCausalLM",
    .gguf = "glm4",
    .hf_keys = {"attention_bias"},
    .describe = [](ModelConfig& config) { config.norms = kNormsAround; },
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          if (file.boolean("attention_bias", false)) config.biases = kQkvBiases;
          read_hf_rope(file, config, {.partial = true, .part = 0.5});
        },
    .read_gguf =
        [](const GgufFields& file, ModelConfig& config) {
          if (file.gguf().find_tensor("blk.0.attn_q.bias") != nullptr) config.biases = kQkvBiases;
          read_gguf_rope(file, config);
        },
    .tensors = {.post_attention_norm = "post_self_attn_layernorm",
                .post_mlp_norm = "post_mlp_layernorm",
                .fused_gate_up = true,
                .paired_gguf = true,
                .paired_hf = true},
};

}  // namespace sheaf

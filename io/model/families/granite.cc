// Granite 3 (dense): Llama with factors on embedding, attention scores, residual sums and logits.
#include "io/model/families/families.h"

namespace sheaf {

constinit const Family kGraniteFamily{
    .name = "granite",
    .architecture = "GraniteForCausalLM",
    .gguf = "granite",
    .hf_keys = {"embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling"},
    .gguf_keys = {"embedding_scale", "attention.scale", "residual_scale", "logit_scale"},
    .read_hf =
        [](const HfFields& file, ModelConfig& config) {
          config.embedding_scale = factor(file, "embedding_multiplier", 1);
          config.score_scale = factor(file, "attention_multiplier", 1);
          config.residual_scale = factor(file, "residual_multiplier", 1);
          config.logit_scale = 1 / factor(file, "logits_scaling", 1);
          read_hf_rope(file, config);
        },
    .read_gguf =
        [](const GgufFields& file, ModelConfig& config) {
          config.embedding_scale = factor(file, "embedding_scale", 1);
          config.score_scale = factor(file, "attention.scale", 0);
          config.residual_scale = factor(file, "residual_scale", 1);
          config.logit_scale = 1 / factor(file, "logit_scale", 1);
          read_gguf_rope(file, config, false);
        },
    .tensors = {.paired_gguf = true},
};

}  // namespace sheaf

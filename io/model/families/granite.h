#pragma once
#include "io/model/family.h"

namespace sheaf {

/// Llama with factors on embedding, attention scores, residual sums and logits.
inline void read_granite_hf(const HfFields& file, ModelConfig& config) {
  config.embedding_scale = factor(file, "embedding_multiplier", 1);
  config.score_scale = factor(file, "attention_multiplier", 1);
  config.residual_scale = factor(file, "residual_multiplier", 1);
  config.logit_scale = 1 / factor(file, "logits_scaling", 1);
  read_hf_rope(file, config);
}
inline void read_granite_gguf(const GgufFields& file, ModelConfig& config) {
  config.embedding_scale = factor(file, "embedding_scale", 1);
  config.score_scale = factor(file, "attention.scale", 0);
  config.residual_scale = factor(file, "residual_scale", 1);
  config.logit_scale = 1 / factor(file, "logit_scale", 1);
  read_gguf_rope(file, config, false);
}

}  // namespace sheaf

#pragma once
#include "io/model/family.h"

namespace sheaf {

/// What Gemma 2 and 3 have alike: norms around attention and MLP, GELU, and embeddings times sqrt(hidden).
inline void describe_gemma(ModelConfig& config) {
  config.norms = kNormsAround;
  config.activation = Activation::gelu_tanh;
  config.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(config.hidden)));
}

/// The factor on scores of a config.json.
inline float gemma_score_scale(const HfFields& file) {
  return static_cast<float>(1 / std::sqrt(positive(file, "query_pre_attn_scalar", 256)));
}

/// The factor on scores that a GGUF file does not say: only the 27B models, known by their layers, have
/// another than 1 / sqrt(head_dim).
inline float gemma_score_scale(const ModelConfig& config, int32_t layers_of_27b) {
  if (config.layer_count() != layers_of_27b) return 0;
  return static_cast<float>(1 / std::sqrt(static_cast<double>(config.hidden / config.heads)));
}

/// Norms are stored as w - 1, and called otherwise than Llama's.
constexpr FamilyTensors kGemmaTensors{.pre_mlp_norm = "pre_feedforward_layernorm", .norms_less_one = true};

}  // namespace sheaf

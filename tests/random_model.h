#pragma once
#include <cmath>
#include <cstdint>

#include "core/model/shapes.h"

namespace sheaf::test {

/// The shape of a random model; 0 in rotary_dim means head_dim.
struct RandomModelShape {
  int32_t layers = 2;
  int32_t hidden = 32;
  int32_t ffn = 48;
  int32_t heads = 4;
  int32_t kv_heads = 2;
  int32_t head_dim = 8;
  int32_t vocab = 61;
  int32_t rotary_dim = 0;
  QkNorm qk_norm = QkNorm::none;
  bool post_norm = false;
  bool biases = false;  ///< on q, k and v
  bool tied_output = false;
  void (*change)(ModelConfig& config) = nullptr;  ///< sets what else differs
};

/// Windows smaller than a value, and than a document, layer by layer.
inline void use_windows(ModelConfig& config) {
  for (size_t i = 0; i < config.layers.size(); ++i) config.layers[i].window = i % 2 == 0 ? 3 : 11;
}

/// Experts in every other layer, with an MLP that all tokens share.
inline void use_experts(ModelConfig& config) {
  config.experts = {
      .count = 5, .per_token = 2, .ffn = 20, .shared_ffn = 12, .shared_gate = true, .normalized = true};
  for (size_t i = 0; i < config.layers.size(); i += 2) config.layers[i].experts = true;
}

/// Experts in every layer and nothing else, as GLM-4.5 chooses them.
inline void use_sigmoid_experts(ModelConfig& config) {
  config.experts = {.count = 9,
                    .per_token = 3,
                    .ffn = 16,
                    .scores = RouterScores::sigmoid,
                    .choice_bias = true,
                    .normalized = true,
                    .factor = 1.5f};
  for (LayerConfig& layer : config.layers) layer.experts = true;
}

/// What sets gpt-oss apart: sinks, biases everywhere, the clamped SwiGLU and a window in every other layer.
inline void use_gpt_oss(ModelConfig& config) {
  config.biases = {.q = true, .k = true, .v = true, .o = true};
  config.sinks = true;
  config.activation = Activation::clamped;
  config.experts = {
      .count = 6, .per_token = 2, .ffn = 20, .logit_bias = true, .biases = true, .normalized = true};
  for (size_t i = 0; i < config.layers.size(); ++i) {
    config.layers[i].window = i % 2 == 0 ? 5 : 0;
    config.layers[i].experts = true;
  }
}

inline Model make_random_model(const RandomModelShape& shape, uint32_t seed) {
  ModelConfig config;
  config.family = "llama";
  config.layers.resize(static_cast<size_t>(shape.layers));
  config.hidden = shape.hidden;
  config.ffn = shape.ffn;
  config.heads = shape.heads;
  config.kv_heads = shape.kv_heads;
  config.head_dim = shape.head_dim;
  config.vocab = shape.vocab;
  config.context = 4096;
  config.qk_norm = shape.qk_norm;
  if (shape.post_norm) config.norms = kNormsAfter;
  if (shape.biases) config.biases = kQkvBiases;
  config.tied_output = shape.tied_output;
  config.rotary_dim = shape.rotary_dim == 0 ? shape.head_dim : shape.rotary_dim;
  RopeTable& rope = config.ropes.emplace_back();
  for (int32_t i = 0; i < config.rotary_dim / 2; ++i) {
    const double exponent = 2.0 * i / config.rotary_dim;
    rope.freqs.push_back(static_cast<float>(std::pow(10000.0, -exponent)));
  }
  if (shape.change != nullptr) shape.change(config);
  return sheaf::make_random_model(config, seed);
}

}  // namespace sheaf::test

#pragma once
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/model/model.h"

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
  bool biases = false;
  bool tied_output = false;
};

/// A random model that owns its weights (copies share them). Logits spread over a few units.
inline Model make_random_model(const RandomModelShape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  Model model;
  model.path = "random";
  const auto matrix = [&](std::string name, int64_t rows, int64_t cols, float mean, float spread) {
    std::normal_distribution<float> normal(mean, spread);
    auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(rows * cols));
    for (float& value : *values) value = normal(random);
    Matrix result;
    result.name = std::move(name);
    result.rows = rows;
    result.cols = cols;
    result.data = reinterpret_cast<const std::byte*>(values->data());
    model.files.push_back(values);
    return result;
  };
  const auto vector = [&](std::string name, int64_t size, float mean) {
    return matrix(std::move(name), 1, size, mean, 0.1f);
  };
  const auto projection = [&](std::string name, int64_t rows, int64_t cols) {
    return matrix(std::move(name), rows, cols, 0, 1.5f / std::sqrt(static_cast<float>(cols)));
  };

  ModelConfig& config = model.config;
  config.family = "llama";
  config.layers = shape.layers;
  config.hidden = shape.hidden;
  config.ffn = shape.ffn;
  config.heads = shape.heads;
  config.kv_heads = shape.kv_heads;
  config.head_dim = shape.head_dim;
  config.vocab = shape.vocab;
  config.context = 4096;
  config.qk_norm = shape.qk_norm;
  config.post_norm = shape.post_norm;
  config.tied_output = shape.tied_output;
  config.rotary_dim = shape.rotary_dim == 0 ? shape.head_dim : shape.rotary_dim;
  for (int32_t i = 0; i < config.rotary_dim / 2; ++i) {
    const double exponent = 2.0 * i / config.rotary_dim;
    config.rope_freqs.push_back(static_cast<float>(std::pow(10000.0, -exponent)));
  }

  const int64_t q_size = int64_t{shape.heads} * shape.head_dim;
  const int64_t kv_size = int64_t{shape.kv_heads} * shape.head_dim;
  model.embedding = matrix("embedding", shape.vocab, shape.hidden, 0, 1);
  for (int32_t i = 0; i < shape.layers; ++i) {
    LayerWeights layer;
    layer.attention_norm = vector("attention_norm", shape.hidden, 1);
    layer.mlp_norm = vector("mlp_norm", shape.hidden, 1);
    layer.q = projection("q", q_size, shape.hidden);
    layer.k = projection("k", kv_size, shape.hidden);
    layer.v = projection("v", kv_size, shape.hidden);
    layer.o = projection("o", shape.hidden, q_size);
    layer.gate = projection("gate", shape.ffn, shape.hidden);
    layer.up = projection("up", shape.ffn, shape.hidden);
    layer.down = projection("down", shape.hidden, shape.ffn);
    if (shape.biases) {
      layer.q_bias = vector("q_bias", q_size, 0);
      layer.k_bias = vector("k_bias", kv_size, 0);
      layer.v_bias = vector("v_bias", kv_size, 0);
    }
    if (shape.qk_norm == QkNorm::per_head) {
      layer.q_norm = vector("q_norm", shape.head_dim, 1);
      layer.k_norm = vector("k_norm", shape.head_dim, 1);
    } else if (shape.qk_norm == QkNorm::whole) {
      layer.q_norm = vector("q_norm", q_size, 1);
      layer.k_norm = vector("k_norm", kv_size, 1);
    }
    model.layers.push_back(std::move(layer));
  }
  model.final_norm = vector("final_norm", shape.hidden, 1);
  model.output = shape.tied_output ? model.embedding : projection("output", shape.vocab, shape.hidden);
  return model;
}

}  // namespace sheaf::test

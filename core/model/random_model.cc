#include "core/model/random_model.h"

#include <cmath>
#include <random>

#include "core/model/shapes.h"

namespace sheaf {
namespace {

class RandomWeights {
 public:
  RandomWeights(Model& model, uint32_t seed) : model_(model), random_(seed) {}

  Matrix matrix(std::string name, int64_t rows, int64_t cols, float mean, float spread) {
    std::normal_distribution<float> normal(mean, spread);
    auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(rows * cols));
    for (float& value : *values) value = normal(random_);
    Matrix result;
    result.name = std::move(name);
    result.rows = rows;
    result.cols = cols;
    result.data = reinterpret_cast<const std::byte*>(values->data());
    model_.files.push_back(std::move(values));
    return result;
  }
  Matrix vector(std::string name, int64_t size, float mean) {
    return matrix(std::move(name), 1, size, mean, 0.1f);
  }
  Matrix projection(std::string name, int64_t rows, int64_t cols) {
    return matrix(std::move(name), rows, cols, 0, 1.5f / std::sqrt(static_cast<float>(cols)));
  }

 private:
  Model& model_;
  std::mt19937 random_;
};

}  // namespace

Model make_random_model(const ModelConfig& config, uint32_t seed, bool biases) {
  Model model;
  model.path = "random";
  model.config = config;
  RandomWeights make(model, seed);
  const int64_t q_size = int64_t{config.heads} * config.head_dim;
  const int64_t kv_size = int64_t{config.kv_heads} * config.head_dim;
  model.embedding = make.matrix("embedding", config.vocab, config.hidden, 0, 1);
  for (int32_t i = 0; i < config.layers; ++i) {
    LayerWeights layer;
    layer.attention_norm = make.vector("attention_norm", config.hidden, 1);
    layer.mlp_norm = make.vector("mlp_norm", config.hidden, 1);
    layer.q = make.projection("q", q_size, config.hidden);
    layer.k = make.projection("k", kv_size, config.hidden);
    layer.v = make.projection("v", kv_size, config.hidden);
    layer.o = make.projection("o", config.hidden, q_size);
    layer.gate = make.projection("gate", config.ffn, config.hidden);
    layer.up = make.projection("up", config.ffn, config.hidden);
    layer.down = make.projection("down", config.hidden, config.ffn);
    if (biases) {
      layer.q_bias = make.vector("q_bias", q_size, 0);
      layer.k_bias = make.vector("k_bias", kv_size, 0);
      layer.v_bias = make.vector("v_bias", kv_size, 0);
    }
    if (config.qk_norm != QkNorm::none) {
      const bool whole = config.qk_norm == QkNorm::whole;
      layer.q_norm = make.vector("q_norm", whole ? q_size : config.head_dim, 1);
      layer.k_norm = make.vector("k_norm", whole ? kv_size : config.head_dim, 1);
    }
    model.layers.push_back(std::move(layer));
  }
  model.final_norm = make.vector("final_norm", config.hidden, 1);
  model.output =
      config.tied_output ? model.embedding : make.projection("output", config.vocab, config.hidden);
  return model;
}

int64_t random_model_bytes(const ModelConfig& config) {
  const int64_t embeddings = int64_t{config.vocab} * config.hidden * (config.tied_output ? 1 : 2);
  return (layer_weights(config) + embeddings) * int64_t{sizeof(float)};
}

}  // namespace sheaf

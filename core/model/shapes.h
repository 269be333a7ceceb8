#pragma once
#include <string>
#include <vector>

#include "core/model/model.h"

namespace sheaf {

/// The description of a well-known model by name (qwen3-8b, …), for benchmarks and estimates without its
/// files; refuses an unknown name and lists the known ones.
ModelConfig shape_by_name(const std::string& name);
std::vector<std::string> shape_names();
bool is_shape(const std::string& name);

/// Multiply-adds of the matrix products of one token in all layers, the output projection not counted.
int64_t layer_weights(const ModelConfig& config);
/// Weights of the experts that a token does not go through, in all layers.
int64_t idle_weights(const ModelConfig& config);

/// Weights of one expert; 0: the model has none.
int64_t expert_weights(const ModelConfig& config);
int64_t expert_layers(const ModelConfig& config);
/// What of layer_weights() every token uses whatever it chooses: all but the experts.
int64_t unrouted_weights(const ModelConfig& config);

/// A model of the given shape with random fp32 weights of its own (copies share them), for tests and for
/// timing without a model's files. Logits spread over a few units.
Model make_random_model(const ModelConfig& config, uint32_t seed);

/// Bytes of its weights.
int64_t random_model_bytes(const ModelConfig& config);

}  // namespace sheaf

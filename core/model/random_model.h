#pragma once
#include <cstdint>

#include "core/model/model.h"

namespace sheaf {

/// A model of the given shape with random fp32 weights of its own (copies share them), for tests and for
/// timing without a model's files. Logits spread over a few units.
Model make_random_model(const ModelConfig& config, uint32_t seed, bool biases = false);

/// Bytes of its weights.
int64_t random_model_bytes(const ModelConfig& config);

}  // namespace sheaf

#pragma once
#include <initializer_list>
#include <vector>

#include "core/model/model.h"
#include "cuda/base/device_memory.h"
#include "cuda/base/floats.h"

namespace sheaf::cuda {

struct DeviceLayer {
  DeviceMemory<float> attention_norm;  ///< [hidden]
  DeviceMemory<float> mlp_norm;        ///< [hidden]
  DeviceMemory<float> q_norm;          ///< [head_dim] or [heads × head_dim]; empty where the family has none
  DeviceMemory<float> k_norm;          ///< [head_dim] or [kv_heads × head_dim], likewise
  DeviceMemory<float> qkv_bias;  ///< [(heads + 2 kv_heads) × head_dim]; empty where the family has none
  DeviceMemory<bf16> qkv;        ///< [(heads + 2 kv_heads) × head_dim, hidden]
  DeviceMemory<bf16> o;          ///< [hidden, heads × head_dim]
  DeviceMemory<bf16> gate_up;    ///< [2 ffn, hidden]: 8 rows of gate, 8 of up, and so on
  DeviceMemory<bf16> down;       ///< [hidden, ffn]
};

/// A model's weights on the device.
struct DeviceWeights {
  DeviceMemory<bf16> embedding;  ///< [vocab, hidden]
  std::vector<DeviceLayer> layers;
  DeviceMemory<float> final_norm;  ///< [hidden]
  DeviceMemory<bf16> output;       ///< [vocab, hidden]; empty when tied to the embedding
  DeviceMemory<float> rope_freqs;  ///< [rotary_dim / 2]

  int64_t bytes() const;  ///< of the matrices
  const bf16* output_or_embedding() const { return output.size() > 0 ? output.data() : embedding.data(); }
};

/// Device memory that a model's weights take.
int64_t weight_bytes(const Model& model);
DeviceWeights upload_weights(const Model& model);
DeviceWeights random_weights(const ModelConfig& config, uint64_t seed);

}  // namespace sheaf::cuda

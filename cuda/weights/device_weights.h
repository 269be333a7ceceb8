#pragma once
#include <initializer_list>
#include <vector>

#include "core/model/model.h"
#include "cuda/base/device_memory.h"
#include "cuda/base/floats.h"
#include "cuda/base/fp8.h"

namespace sheaf::cuda {

/// A matrix of weights [rows, cols]: bf16, or e4m3 with a scale for each row.
struct DeviceMatrix {
  DeviceMemory<bf16> wide;
  DeviceMemory<e4m3> narrow;
  DeviceMemory<float> scales;  ///< [rows]

  Fp8Weight fp8() const { return {narrow.data(), scales.data()}; }
  int64_t bytes() const { return wide.size() * 2 + narrow.size() + scales.size() * 4; }
};

struct DeviceLayer {
  DeviceMemory<float> attention_norm;  ///< [hidden]
  DeviceMemory<float> mlp_norm;        ///< [hidden]
  DeviceMemory<float> q_norm;          ///< [head_dim] or [heads × head_dim]; empty where the family has none
  DeviceMemory<float> k_norm;          ///< [head_dim] or [kv_heads × head_dim], likewise
  DeviceMemory<float> qkv_bias;  ///< [(heads + 2 kv_heads) × head_dim]; empty where the family has none
  DeviceMatrix qkv;              ///< [(heads + 2 kv_heads) × head_dim, hidden]
  DeviceMatrix o;                ///< [hidden, heads × head_dim]
  DeviceMatrix gate_up;          ///< [2 ffn, hidden], as interleave_rows() puts them
  DeviceMatrix down;             ///< [hidden, ffn]
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

/// What the matrices of the layers are on the device. Embedding and output projection are bf16 always.
enum class WeightNumbers : uint8_t {
  wide,    ///< bf16
  narrow,  ///< e4m3
};

/// Device memory that a model's weights take.
int64_t weight_bytes(const Model& model, WeightNumbers numbers);
DeviceWeights upload_weights(const Model& model, WeightNumbers numbers);
DeviceWeights random_weights(const ModelConfig& config, WeightNumbers numbers, uint64_t seed);

}  // namespace sheaf::cuda

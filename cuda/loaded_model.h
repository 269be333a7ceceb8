#pragma once
#include <vector>

#include "core/model/config.h"
#include "cuda/activations.h"
#include "cuda/attention/attention.h"
#include "cuda/base/device_memory.h"
#include "cuda/base/floats.h"
#include "cuda/base/heads.h"
#include "cuda/base/stream.h"
#include "cuda/gemm/products.h"
#include "cuda/weights/device_weights.h"

namespace sheaf::cuda {

/// The keys and values of all layers in fp16; or in e4m3, and those of the layer that runs in fp16.
struct KvPool {
  DeviceMemory<f16> wide;  ///< [layers or 1, keys and values, kv_heads, slots, padded_dim]
  DeviceMemory<e4m3> narrow_keys, narrow_values;  ///< [layers, …] as NarrowKeys has them
  DeviceMemory<float> turns;                      ///< [slots, rotary_dim], where narrow keys have a bias
};

/// A model on its device, and what its steps use there, one after the other on one stream.
struct LoadedModel {
  LoadedModel(ModelConfig config, DeviceWeights weights, bool fp8, ProductKernels kernels);

  ModelConfig config;
  DeviceWeights weights;
  bool fp8;                       ///< whether the layers' products are in FP8
  bool attention_rounds = false;  ///< whether attention writes e4m3 itself
  bool attends_in_fp8 = false;    ///< whether attention reads e4m3
  HeadLayout layout;
  Stream stream;
  Products products;  ///< on the stream
  KvPool pool;
  Activations room;
  DeviceMemory<float> head_scales;  ///< [layers, heads + 2 kv_heads] of queries, keys and values in e4m3
  DeviceMemory<bf16> expanded;      ///< the packed matrix that a product reads
  DeviceMemory<e4m3> expanded8;     ///< one expanded matrix in FP8
  std::vector<float> host_logits;   ///< [picks at once, vocab], for tokens that are drawn on the host

  bool packed() const { return !weights.layers.empty() && !weights.layers.front().qkv.packed.empty(); }
  int32_t group() const { return config.heads / config.kv_heads; }
  /// A matrix as products read it. A packed one is expanded into memory that the next one will take: the
  /// stream keeps the order.
  const bf16* bf16_weight(const DeviceMatrix& matrix) const;
  Fp8Weight fp8_weight(const DeviceMatrix& matrix) const;

  bool narrow_keys() const { return pool.narrow_keys.size() > 0; }
  NarrowKeys narrow(int32_t layer) const {
    const float* bias = weights.layers[static_cast<size_t>(layer)].qkv_bias.data();
    return {pool.narrow_keys.data() + layer * layer_pool(), pool.narrow_values.data() + layer * layer_pool(),
            head_scales.data() + int64_t{layer} * (config.heads + 2 * config.kv_heads),
            key_biases() ? bias + int64_t{config.heads} * config.head_dim : nullptr, pool.turns.data()};
  }
  /// Whether keys are a rotated sum of something and a bias.
  bool key_biases() const { return layout.norm == 0 && weights.layers.front().qkv_bias.size() > 0; }
  f16* keys(int32_t layer) const {
    return pool.wide.data() + (narrow_keys() ? 0 : int64_t{2} * layer * layer_pool());
  }
  f16* values(int32_t layer) const { return keys(layer) + layer_pool(); }

 private:
  /// Values of the keys, or of the values, of one layer.
  int64_t layer_pool() const { return int64_t{config.kv_heads} * layout.slots * layout.padded_dim; }
};

}  // namespace sheaf::cuda

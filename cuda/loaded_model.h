#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/backend/footprint.h"
#include "core/base/thread_pool.h"
#include "core/model/config.h"
#include "cuda/attention/attention.h"
#include "cuda/base/device_memory.h"
#include "cuda/base/floats.h"
#include "cuda/base/fp8_memory.h"
#include "cuda/base/heads.h"
#include "cuda/cuda_backend.h"
#include "cuda/expert_room.h"
#include "cuda/gemm/products.h"
#include "cuda/ops/ops.h"
#include "cuda/weights/device_weights.h"

namespace sheaf::cuda {

/// Device memory that every step uses anew.
struct Activations {
  DeviceMemory<float> x;       ///< [rows, hidden], the residual stream
  DeviceMemory<float> rope;    ///< [rotary tables, rows, rotary_dim], cosines then sines
  DeviceMemory<float> y;       ///< [rows, hidden], where keeps_blocks()
  DeviceMemory<bf16> normed;   ///< [rows, hidden]
  DeviceMemory<bf16> qkv;      ///< scratch of [rows, (heads + 2 kv_heads) × head_dim]
  DeviceMemory<f16> q;         ///< [rows, heads, padded_dim]
  DeviceMemory<e4m3> q8;       ///< queries in E4M3; empty unless keys are FP8
  DeviceMemory<bf16> mixed;    ///< [rows, heads × head_dim]
  DeviceMemory<bf16> gate_up;  ///< scratch of [rows, 2 widest_mlp]
  DeviceMemory<bf16> mlp;      ///< [rows, widest_mlp]
  ExpertRoom experts;
  Fp8Memory normed8, mixed8, mlp8;   ///< inputs of products in FP8; empty unless products are FP8
  DeviceMemory<float> partial_out;   ///< [partial rows, heads, padded_dim]
  DeviceMemory<float> partial_lse;   ///< [partial rows, heads]
  DeviceMemory<float> logits;        ///< [picks at once, vocab]
  DeviceMemory<float> chain_sums;    ///< [2, picks at once], divergences and normalizers of chains
  DeviceMemory<GreedyResult> picks;  ///< [picks]

  struct Size {
    int64_t rows = 0, partial_rows = 0, picks = 0, picks_at_once = 0;
  };
  Size size;  ///< what they hold now

  bool holds(const Size& wanted) const {
    return wanted.rows <= size.rows && wanted.partial_rows <= size.partial_rows &&
           wanted.picks <= size.picks && wanted.picks_at_once <= size.picks_at_once;
  }

  /// Makes room; what was there is lost.
  void grow(const Size& wanted, const ModelConfig& config, const HeadLayout& layout, bool fp8,
            bool attends_in_fp8, bool wide_experts) {
    size.rows = std::max(size.rows, wanted.rows);
    // These vary from step to step, so the next power of two saves growing again and again.
    size.partial_rows = std::max(size.partial_rows, ceil(wanted.partial_rows));
    size.picks = std::max(size.picks, ceil(wanted.picks));
    size.picks_at_once = std::max(size.picks_at_once, ceil(wanted.picks_at_once));
    const int64_t heads = config.heads, q_size = heads * config.head_dim, ffn = widest_mlp(config);
    x.grow(size.rows * config.hidden);
    rope.grow(size.rows * config.rotary_dim * rotary_tables(config));
    // Picked rows pass through it too, and a row may be picked twice. Routers read it in FP8 models, too.
    const bool wide = !fp8 || config.experts.count > 0;
    normed.grow(std::max(wide ? size.rows : 0, size.picks_at_once) * config.hidden);
    if (keeps_blocks(config)) y.grow(size.rows * config.hidden);
    qkv.grow(scratch_tokens(size.rows) * (q_size + int64_t{2} * config.kv_heads * config.head_dim));
    q.grow(size.rows * heads * layout.padded_dim);
    if (attends_in_fp8) q8.grow(q.size());
    mixed.grow(size.rows * q_size);
    if (fp8) {
      normed8.grow(size.rows, config.hidden);
      mixed8.grow(size.rows, q_size);
      mlp8.grow(size.rows, ffn);
    } else {
      gate_up.grow(scratch_tokens(size.rows) * 2 * ffn);
      mlp.grow(size.rows * ffn);
    }
    experts.grow(size.rows, config, fp8, wide_experts);
    partial_out.grow(size.partial_rows * heads * layout.padded_dim);
    partial_lse.grow(size.partial_rows * heads);
    logits.grow(size.picks_at_once * config.vocab);
    chain_sums.grow(2 * size.picks_at_once);
    picks.grow(size.picks);
  }

 private:
  static int64_t ceil(int64_t count) {
    return count == 0 ? 0 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
  }
};

/// The keys and values of all layers in fp16; or in e4m3, and those of the layer that runs in fp16.
struct KvPool {
  DeviceMemory<f16> wide;  ///< [layers or 1, keys and values, kv_heads, slots, padded_dim]
  DeviceMemory<e4m3> narrow_keys, narrow_values;  ///< [layers, …] as NarrowKeys has them
  DeviceMemory<float> turns;                      ///< [slots, rotary_dim], where narrow keys have a bias

  template <class Use>
  void each(const Use& use) const {
    use(wide), use(narrow_keys), use(narrow_values), use(turns);
  }
};

/// Experts [first, first + count) of a layer.
struct ExpertRange {
  int32_t first, count;
};

/// A model on its device, and what its steps use there, one after the other on one stream.
struct LoadedModel {
  LoadedModel(ModelConfig config, DeviceWeights weights, bool fp8, ProductKernels kernels);

  ModelConfig config;
  std::vector<int32_t> windows;  ///< of the layers, each once; 0: they see all keys
  DeviceWeights weights;
  bool fp8;                       ///< whether the layers' products are in FP8
  bool attention_rounds = false;  ///< whether attention writes e4m3 itself
  bool attends_in_fp8 = false;    ///< whether attention reads e4m3
  HeadLayout layout;
  Stream stream;
  Products products;  ///< on the stream
  KvPool pool;
  Activations room;
  DeviceMemory<float> head_scales;      ///< [layers, heads + 2 kv_heads] of queries, keys and values in e4m3
  DeviceMemory<bf16> expanded;          ///< the packed matrix that a product reads
  DeviceMemory<e4m3> expanded8;         ///< one expanded matrix in FP8
  PinnedMemory<float> host_logits;      ///< [picks at once, vocab], for tokens that are drawn on the host
  std::unique_ptr<ThreadPool> pickers;  ///< draw them; none before the first

  bool packed() const { return expanded.size() + expanded8.size() > 0; }
  /// Whether the experts of some layer are bf16, in FP8 models too.
  bool wide_experts() const { return !fp8 || weights.mxfp4.wide_layers > 0; }
  int32_t group() const { return config.heads / config.kv_heads; }
  /// A matrix as products read it. A packed one is expanded into memory that the next one will take: the
  /// stream keeps the order.
  const bf16* bf16_weight(const DeviceMatrix& matrix) const;
  Fp8Weight fp8_weight(const DeviceMatrix& matrix) const;
  /// The weights of some of the experts in a matrix of all. Of packed ones, only those that have rows of the
  /// step are expanded: `offsets` as in Routes.
  const bf16* bf16_weight(const DeviceMatrix& matrix, const ExpertRange& range, const int32_t* offsets) const;
  Fp8Weight fp8_weight(const DeviceMatrix& matrix, const ExpertRange& range, const int32_t* offsets) const;
  /// How many experts of a matrix are multiplied together: as many as there is room for expanded.
  int32_t experts_at_once(const DeviceMatrix& matrix) const;

  /// Which of the windows a layer has.
  size_t window_of(int32_t layer) const;
  /// Rotary table `index` of the step's rows.
  float* rope_table(int32_t index) const {
    return room.rope.data() + index * room.size.rows * config.rotary_dim;
  }
  /// The rotary table of a layer; the last table where the layer does not rotate.
  const float* rope_of(int32_t layer) const {
    const int32_t own = config.layers[static_cast<size_t>(layer)].rope;
    return rope_table(own >= 0 ? own : static_cast<int32_t>(config.ropes.size()));
  }

  bool narrow_keys() const { return pool.narrow_keys.size() > 0; }
  NarrowKeys narrow(int32_t layer) const {
    const float* bias = weights.layers[static_cast<size_t>(layer)].qkv_bias.data();
    return {pool.narrow_keys.data() + layer * layer_pool(), pool.narrow_values.data() + layer * layer_pool(),
            head_scales.data() + int64_t{layer} * (config.heads + 2 * config.kv_heads),
            key_biases() ? bias + int64_t{config.heads} * config.head_dim : nullptr, pool.turns.data()};
  }
  /// Whether keys are a rotated sum of something and a bias.
  bool key_biases() const { return rotates_key_biases(config); }
  f16* keys(int32_t layer) const {
    return pool.wide.data() + (narrow_keys() ? 0 : int64_t{2} * layer * layer_pool());
  }
  f16* values(int32_t layer) const { return keys(layer) + layer_pool(); }

 private:
  /// Values of the keys, or of the values, of one layer.
  int64_t layer_pool() const { return int64_t{config.kv_heads} * layout.slots * layout.padded_dim; }
};

/// What queries, keys and values are divided by on the way to e4m3, [layers, heads + 2 kv_heads]: one scale
/// for each head, which takes the largest number that the weights allow (where norms come after, that they
/// are likely to give) to the largest of e4m3. Usual numbers are a hundredth of that and e4m3 has 15 bits of
/// range, so the room costs no precision, and no scale depends on the text.
DeviceMemory<float> head_scales(const LoadedModel& model);

/// Refuses what the kernels cannot do, before anything is uploaded.
void check_model(const ModelConfig& config, const CudaOptions& options);

}  // namespace sheaf::cuda

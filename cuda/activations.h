#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/model/config.h"
#include "cuda/base/device_memory.h"
#include "cuda/gemm/products.h"
#include "cuda/ops/ops.h"

namespace sheaf::cuda {

/// Room for rows of e4m3 values.
struct Fp8Memory {
  DeviceMemory<e4m3> values;
  DeviceMemory<float> scales, blocks;

  void grow(int64_t rows, int64_t cols) {
    values.grow(rows * cols);
    scales.grow(rows);
    blocks.grow(rows * fp8_blocks(cols));
  }
  Fp8Rows rows() const { return {values.data(), scales.data(), blocks.data()}; }
};

/// Device memory that every step uses anew.
struct Activations {
  DeviceMemory<float> x;             ///< [rows, hidden], the residual stream
  DeviceMemory<float> rope;          ///< [rows, rotary_dim], cosines then sines
  DeviceMemory<float> y;             ///< [rows, hidden], post-norm families only
  DeviceMemory<bf16> normed;         ///< [rows, hidden]
  DeviceMemory<bf16> qkv;            ///< Scratch of [rows, (heads + 2 kv_heads) × head_dim]
  DeviceMemory<f16> q;               ///< [rows, heads, padded_dim]
  DeviceMemory<e4m3> q8;             ///< queries in E4M3; empty unless keys are FP8
  DeviceMemory<bf16> mixed;          ///< [rows, heads × head_dim]
  DeviceMemory<bf16> gate_up;        ///< Scratch of [rows, 2 ffn]
  DeviceMemory<bf16> mlp;            ///< [rows, ffn]
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
            bool attends_in_fp8) {
    size.rows = std::max(size.rows, wanted.rows);
    // These vary from step to step, so the next power of two saves growing again and again.
    size.partial_rows = std::max(size.partial_rows, ceil(wanted.partial_rows));
    size.picks = std::max(size.picks, ceil(wanted.picks));
    size.picks_at_once = std::max(size.picks_at_once, ceil(wanted.picks_at_once));
    const int64_t heads = config.heads, q_size = heads * config.head_dim;
    x.grow(size.rows * config.hidden);
    rope.grow(size.rows * config.rotary_dim);
    // Picked rows pass through it too, and a row may be picked twice.
    normed.grow(std::max(fp8 ? 0 : size.rows, size.picks_at_once) * config.hidden);
    if (config.post_norm) y.grow(size.rows * config.hidden);
    qkv.grow(Scratch::size(size.rows, q_size + int64_t{2} * config.kv_heads * config.head_dim));
    q.grow(size.rows * heads * layout.padded_dim);
    if (attends_in_fp8) q8.grow(q.size());
    mixed.grow(size.rows * q_size);
    if (fp8) {
      normed8.grow(size.rows, config.hidden);
      mixed8.grow(size.rows, q_size);
      mlp8.grow(size.rows, config.ffn);
    } else {
      gate_up.grow(Scratch::size(size.rows, int64_t{2} * config.ffn));
      mlp.grow(size.rows * config.ffn);
    }
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

}  // namespace sheaf::cuda

#pragma once
#include <cstdint>
#include <cuda_runtime.h>

#include "cuda/base/floats.h"
#include "cuda/base/heads.h"

namespace sheaf::cuda {

/// The kernels of the CUDA backend, one launch each, in the order a layer runs them. Pointers are device
/// pointers, matrices row-major.

/// x[row] = table[tokens[row]]
void embed(const bf16* table, const int32_t* tokens, int32_t rows, int32_t hidden, float* x,
           cudaStream_t stream);

/// out[i] = rms_norm(x[rows[i]]) * weight; `rows` null: row i.
void rms_norm(const float* x, const int32_t* row_index, const float* weight, int32_t rows, int32_t hidden,
              float eps, bf16* out, cudaStream_t stream);

/// x += rms_norm(y) * weight, and out = bf16(x): the post-norm families.
void add_rms_norm(const float* y, const float* weight, int32_t rows, int32_t hidden, float eps, float* x,
                  bf16* out, cudaStream_t stream);

/// out = bf16(x), `count` values.
void round_to_bf16(const float* x, int64_t count, bf16* out, cudaStream_t stream);

/// cosines and sines [rows, rotary_dim] of every row's position, times rope_scale: the cosines first.
void rope_table(const float* rope_freqs, const int32_t* positions, int32_t rows, const HeadLayout& layout,
                float* table, cudaStream_t stream);

/// Takes the heads of `qkv` [rows, (heads + 2 kv_heads) × head_dim] to their targets.
template <class In>  // bf16 or float
void place_heads(const In* qkv, int32_t rows, const HeadTargets& targets, cudaStream_t stream);

/// out = the rows of two matrices [rows, cols], 8 of the first, 8 of the second, and so on; `halves` holds
/// one after the other. rows is a multiple of 8.
void interleave_rows(const bf16* halves, int64_t rows, int64_t cols, bf16* out, cudaStream_t stream);

/// out[row] = silu(gate) * up, where gate_up[row] is 8 of gate, 8 of up, and so on.
template <class In>  // bf16 or float
void gated_silu(const In* gate_up, int32_t rows, int32_t ffn, bf16* out, cudaStream_t stream);

/// Greedy choice from logits [rows, vocab]: the largest, lowest id on a tie, among allowed[first, first +
/// count) where count > 0; and its log-probability over the whole vocabulary. Nothing where count is
/// negative.
struct GreedyPick {
  int32_t first_allowed, allowed_count;
};
struct GreedyResult {
  int32_t token;
  float logprob;
  float contrast;  ///< of a pick with experts, by fuse_experts()
};
void pick_greedy(const float* logits, const GreedyPick* picks, const int32_t* allowed, int32_t rows,
                 int32_t vocab, GreedyResult* out, cudaStream_t stream);

/// A pick with experts, the picks right after it.
struct ExpertGroup {
  int32_t pick, experts;
  float contrast;     ///< negative: dynamic
  int32_t aggregate;  ///< 0 max, 1 mixture, 2 product
};
/// One of a step's picks.
struct ExpertPick {
  int32_t amateur;   ///< the pick it is an expert of, -1: none
  int32_t group;     ///< of the step's groups
  int32_t measured;  ///< whether its group's contrast is dynamic
  float prior, log_weight;
};
struct ExpertInputs {
  const ExpertPick* experts;  ///< [picks]
  const ExpertGroup* groups;
  int32_t first_group, group_count;  ///< those to fuse
  bool measured, normalized;         ///< whether any contrast is dynamic, any aggregate not max
  float *divergence, *normalizer;    ///< [rows] each, to work in
};
/// Puts the scores that a pick with experts chooses from in the place of its own logits. `logits` [rows,
/// vocab] and `out` are of the picks from `first` on.
void fuse_experts(const ExpertInputs& inputs, float* logits, int32_t first, int32_t rows, int32_t vocab,
                  GreedyResult* out, cudaStream_t stream);

/// Normally distributed weights for benchmarks.
void fill_random(bf16* out, int64_t count, float spread, uint64_t seed, cudaStream_t stream);

}  // namespace sheaf::cuda

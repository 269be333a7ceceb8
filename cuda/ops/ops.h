#pragma once
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

#include "core/model/config.h"
#include "core/model/dtype.h"
#include "cuda/base/floats.h"
#include "cuda/base/heads.h"

namespace sheaf::cuda {

/// The kernels of the CUDA backend, one launch each, in the order a layer runs them. Pointers are device
/// pointers, matrices row-major.

/// Rows of blocks as model files store them.
/// What an adapter adds to rows of weights: row r gets the sum over k of b[r, k] × a[k].
struct LowRankRows {
  const float* a = nullptr;  ///< [rank, cols]
  const float* b = nullptr;  ///< [rows, rank], the adapter's scale included
  int32_t rank = 0;          ///< 0: no adapter
};

struct PackedRows {
  DType type = DType::f32;
  const uint8_t* data = nullptr;
  int64_t rows = 0, row_bytes = 0;
  int32_t cols = 0;  ///< a multiple of 8
  LowRankRows adapter = {};

  /// `count` rows from row `first` on; there is no adapter.
  PackedRows from(int64_t first, int64_t count) const {
    return {type, data + first * row_bytes, count, row_bytes, cols, {}};
  }
};

/// x [rows, hidden] = the rows of `table` [vocab, hidden] that `tokens` [rows] name.
void embed(const bf16* table, const int32_t* tokens, int32_t rows, int32_t hidden, float* x,
           cudaStream_t stream);

/// values [count] *= scale, and with a cap above 0 cap · tanh(value / cap) of that.
void scale_rows(float* values, int64_t count, float scale, float cap, cudaStream_t stream);

/// Each row of values [rows, cols] += bias [cols].
void add_bias(float* values, const float* bias, int32_t rows, int32_t cols, cudaStream_t stream);

constexpr int32_t kMostHidden = 16384;  ///< largest hidden size of a norm

/// The same where the table is packed.
void embed(const PackedRows& table, const int32_t* tokens, int32_t rows, float* x, cudaStream_t stream);

/// out [rows, hidden]: out[i] = rms_norm(x[row_index[i]]) * weight. `x` [any rows, hidden], `weight`
/// [hidden], `row_index` [rows], or null: row i.
template <class Out>  // bf16*, Fp8Rows or BothRows
void rms_norm(const float* x, const int32_t* row_index, const float* weight, int32_t rows, int32_t hidden,
              float eps, Out out, cudaStream_t stream);

/// out[i] = |by_column × row i| of `weight` [rows, cols], in e4m3 times its scale. `by_column` [cols] or
/// null.
void row_lengths(const bf16* weight, const float* by_column, int32_t rows, int32_t cols, float* out,
                 cudaStream_t stream);
void row_lengths(const Fp8Weight& weight, const float* by_column, int32_t rows, int32_t cols, float* out,
                 cudaStream_t stream);

/// What a block adds to the residual stream, and what the next one reads of it.
struct ResidualNorms {
  const float* of_sum;   ///< [hidden] on what is added; null: no norm
  const float* of_next;  ///< [hidden] before the next block; null: no norm
  float scale = 1;       ///< of what is added
  float eps = 0;
};
/// x += scale × norm(y), and out = norm(x), rounded. `y`, `x` and `out` [rows, hidden].
template <class Out>  // bf16*, Fp8Rows or BothRows
void add_normed(const float* y, const ResidualNorms& norms, int32_t rows, int32_t hidden, float* x, Out out,
                cudaStream_t stream);

/// out [rows, cols] = in [rows, cols], rounded.
template <class In, class Out>  // float to bf16* or BothRows, float or bf16 to Fp8Rows
void round_rows(const In* in, int32_t rows, int32_t cols, Out out, cudaStream_t stream);

/// Brings the blocks of `count` rows of `cols` columns to the scale of their row, the largest of its blocks'
/// scales.
void align_rows(const Fp8Rows& rows, int32_t count, int32_t cols, cudaStream_t stream);

/// table [rows, rotary_dim]: cosines and sines of every row's position, times `scale`, the cosines first.
/// `rope_freqs` [rotary_dim / 2], `positions` [rows].
void rope_table(const float* rope_freqs, const int32_t* positions, int32_t rows, int32_t rotary_dim,
                float scale, float* table, cudaStream_t stream);

/// Takes the heads of `qkv` [rows, (heads + 2 kv_heads) × head_dim] to their targets.
template <class In>  // bf16 or float
void place_heads(const In* qkv, int32_t rows, const HeadTargets& targets, cudaStream_t stream);

/// How the rows of two matrices, gate and up, lie in one.
enum class RowOrder : uint8_t {
  plain,        ///< as they are
  by_eights,    ///< 8 of the first, 8 of the second, and so on
  by_sixteens,  ///< the same, the first 8 of 16 being rows 0, 1, 4, 5, 8, 9, 12, 13: a thread of a product
                ///< has two neighbouring columns of 8, and so writes four of e4m3 together
};
/// Where a row of the first goes; that of the second goes 8 further.
#ifdef __CUDACC__
__host__ __device__
#endif
    constexpr int64_t
    interleaved(RowOrder order, int64_t row) {
  if (order == RowOrder::by_eights) return 2 * row - row % 8;
  const int64_t inside = row % 16;
  return 2 * (row - inside) + inside / 2 % 2 * 16 + inside / 4 * 2 + inside % 2;
}

/// Where they go in a matrix of all: row r to first + r, or to first + interleaved(r).
struct RowPlace {
  int64_t first = 0;
  RowOrder order = RowOrder::plain;
};
/// Writes them to their places in `out` [any rows, cols], in e4m3 by the rows' `peaks` [any rows].
void expand_rows(const PackedRows& in, const RowPlace& place, bf16* out, cudaStream_t stream);
void expand_rows(const PackedRows& in, const RowPlace& place, const float* peaks, e4m3* out,
                 cudaStream_t stream);
/// Rows of experts one after the other. Those of an expert without rows of the step are left out.
struct ExpertRows {
  const int32_t* offsets = nullptr;  ///< [experts + 1] gathered rows, on the device; null: none is left out
  int64_t each = 0;                  ///< rows of one expert
};
/// As expand_rows(), of packed rows of experts.
void expand_experts(const PackedRows& in, const ExpertRows& experts, const RowPlace& place, bf16* out,
                    cudaStream_t stream);
void expand_experts(const PackedRows& in, const ExpertRows& experts, const RowPlace& place,
                    const float* peaks, e4m3* out, cudaStream_t stream);
/// peaks [any rows] = the largest absolute values of the rows; scales [any rows] = what their e4m3 values are
/// multiplied by. Rows of MXFP4 get peaks that make their scales powers of two.
void find_peaks(const PackedRows& in, const RowPlace& place, float* peaks, float* scales,
                cudaStream_t stream);
/// count [1] += the rows of MXFP4 that e4m3, by these peaks, does not hold exactly: those in which something
/// is less than a 2^17th of the largest value, or nearly (a value of two digits ends where the lower one
/// does).
void count_rounded(const PackedRows& in, const RowPlace& place, const float* peaks, int32_t* count,
                   cudaStream_t stream);
/// Blocks of MXFP4 whose values spread about so much, for benchmarks; every row is exact in e4m3.
void fill_random_mxfp4(uint8_t* out, int64_t blocks, float spread, uint64_t seed, cudaStream_t stream);
/// Blocks of Q4_K with about normal values, for benchmarks.
void fill_random_q4_k(uint8_t* out, int64_t blocks, float spread, uint64_t seed, cudaStream_t stream);

/// out [2 rows, cols] = the rows of two matrices [rows, cols], 8 of the first, 8 of the second, and so on;
/// `halves` [2, rows, cols] holds one after the other. bf16 goes by eights, and rows is a multiple of 8; else
/// by sixteens, and it is a multiple of 16.
template <class T>  // bf16, e4m3, or float (the scales of e4m3 rows)
void interleave_rows(const T* halves, int64_t rows, int64_t cols, T* out, cudaStream_t stream);

/// out [rows, ffn] = activation(gate) * up, where a row of `gate_up` [rows, 2 ffn] is 8 of gate, 8 of up, and
/// so on.
template <class In>  // bf16 or float
void apply_gates(Activation activation, const In* gate_up, int32_t rows, int32_t ffn, bf16* out,
                 cudaStream_t stream);

constexpr int32_t kMostGated = 16384;  ///< columns of a row that gates_to_fp8() takes
/// out [rows, ffn] = activation(gate) * up, rounded to e4m3 by the largest value of a row. A row of `gate_up`
/// [rows, 2 ffn] is by sixteens (RowOrder); ffn is a multiple of 16.
void gates_to_fp8(Activation activation, const bf16* gate_up, int32_t rows, int32_t ffn, const Fp8Rows& out,
                  cudaStream_t stream);

/// The tokens that a greedy choice is among: allowed[first, first + count) where count > 0, all where it is
/// 0. Nothing is chosen where it is negative.
struct GreedyPick {
  int32_t first_allowed, allowed_count;
  int32_t rivals;  ///< whether `second` and `watched` of the result are wanted; 0: nothing is watched
  int32_t watch;   ///< as Pick.watch; -1: none
  float bias;      ///< of `watch`
};
struct GreedyResult {
  int32_t token;
  float logprob;
  float contrast;         ///< of a pick with chains, by fuse_chains()
  int32_t voice;          ///< of a pick with chains, by find_voices()
  float second, watched;  ///< as in Picked, where they are wanted
};
/// out [rows] = the token with the largest of logits [rows, vocab], the lowest id on a tie, and its
/// log-probability, and those of its rivals as core/engine/pick.h defines them, over the whole vocabulary.
/// `picks` [rows] point into `allowed` [tokens of all lists].
void pick_greedy(const float* logits, const GreedyPick* picks, const int32_t* allowed, int32_t rows,
                 int32_t vocab, GreedyResult* out, cudaStream_t stream);

/// A pick with chains, the picks right after it.
struct ChainGroup {
  int32_t pick, chains;
  float contrast;     ///< negative: dynamic
  int32_t aggregate;  ///< 0 max, 1 mixture, 2 product
};
/// One of a step's picks.
struct ChainPick {
  int32_t amateur;   ///< the pick it is a chain of, -1: none
  int32_t group;     ///< of the step's groups
  int32_t measured;  ///< whether its group's contrast is dynamic
  float prior, log_weight;
};
struct ChainInputs {
  const ChainPick* chains;           ///< [picks of the step]
  const ChainGroup* groups;          ///< [groups of the step]
  int32_t first_group, group_count;  ///< groups to fuse
  bool measured, normalized;         ///< whether any contrast is dynamic, any aggregate not max
  float* divergence;                 ///< [rows], to work in
  float* normalizer;                 ///< [rows], likewise
};
/// Puts the scores that a pick with chains chooses from in the place of its own logits. `logits` [rows,
/// vocab] and `out` [rows] are of the picks from `first` on.
void fuse_chains(const ChainInputs& inputs, float* logits, int32_t first, int32_t rows, int32_t vocab,
                 GreedyResult* out, cudaStream_t stream);

/// For each pick with chains whose token is in `out`: the chain that spoke it, as core/engine/fuse_chains.cc
/// defines it. To be called after fuse_chains() and pick_greedy(), with the same inputs and logits.
void find_voices(const ChainInputs& inputs, const float* logits, int32_t first, int32_t vocab,
                 GreedyResult* out, cudaStream_t stream);

/// values [rows, cols] × scales [rows] = in [rows, cols], rounded to e4m3.
void round_weights(const bf16* in, int64_t rows, int64_t cols, e4m3* values, float* scales,
                   cudaStream_t stream);

/// out [count]: normally distributed weights for benchmarks.
void fill_random(bf16* out, int64_t count, float spread, uint64_t seed, cudaStream_t stream);

constexpr int32_t kMostSlots = 64;
/// Slots of the key/value pool.
struct SlotList {
  int32_t numbers[kMostSlots];
  int32_t count;
};
/// An array of the pool: [heads, slots] vectors of some bytes, a multiple of 4.
struct SlotVectors {
  std::byte* data;
  int64_t heads, slots, bytes;
  bool narrow_values = false;  ///< they lie as NarrowKeys has values
};
/// Copies the vectors of slots to `packed`, [heads, listed slots], and back. With `rounded` the vectors are
/// of fp16, a multiple of 4, and in `packed` whole numbers of 8 bits [heads, listed slots, width], then their
/// scales [heads, listed slots] in fp32: x = scale · number, scale = largest |x| / 127. A vector with a NaN
/// or an infinity comes back as NaNs.
void pack_slots(const SlotList& slots, const SlotVectors& vectors, bool rounded, std::byte* packed,
                cudaStream_t stream);
void unpack_slots(const SlotList& slots, const SlotVectors& vectors, bool rounded, std::byte* packed,
                  cudaStream_t stream);

}  // namespace sheaf::cuda

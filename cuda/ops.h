#pragma once
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace sheaf::cuda {

using bf16 = __nv_bfloat16;

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

/// How heads lie in a row of queries, keys and values, and what happens to them before attention.
struct HeadLayout {
  int32_t heads, kv_heads, head_dim;
  int32_t padded_dim;  ///< head_dim as attention sees it; the rest is zero
  int32_t rotary_dim;
  int32_t norm;  ///< 0 none, 1 per head, 2 over the whole projection
  float eps;
  float rope_scale;
  float query_scale;  ///< 1/sqrt(head_dim) and log2(e), folded into the queries
  int64_t slots;      ///< of the pool
};

/// cosines and sines [rows, rotary_dim] of every row's position, times rope_scale: the cosines first.
void rope_table(const float* rope_freqs, const int32_t* positions, int32_t rows, const HeadLayout& layout,
                float* table, cudaStream_t stream);

/// Adds biases, norms and rotates the heads of `qkv` [rows, (heads + 2 kv_heads) × head_dim]; queries go to
/// `q` [rows, heads, padded_dim], keys and values to their slots of the layer's pool, each [kv_heads, slots,
/// padded_dim].
void place_heads(const bf16* qkv, const float* bias, const float* q_norm, const float* k_norm,
                 const float* rope, const int32_t* kv_slots, int32_t rows, const HeadLayout& layout, bf16* q,
                 bf16* keys, bf16* values, cudaStream_t stream);

/// Keys of one span that a block of rows looks at.
struct AttentionRange {
  int32_t first_row;   ///< of the block, into tile_rows
  int32_t first_page;  ///< into pages
  int32_t first_key, last_key;
};

/// A block of rows and the ranges of keys it goes over, in order.
struct AttentionItem {
  int32_t first_range;  ///< into ranges
  int32_t range_count;
  int32_t row_count;
  int32_t first_partial;  ///< where its partial results go, in rows; -1: they are whole and go straight to
                          ///< the output
};

struct AttentionInputs {
  const AttentionItem* items;  ///< blocks of at most 64 queries, then blocks of at most 128
  int32_t small_items, large_items;
  const AttentionRange* ranges;
  const int2* tile_rows;  ///< row, visible keys
  const int32_t* pages;
  int32_t page_size;             ///< divides 64
  const int32_t* merged_rows;    ///< rows with partial results
  const int32_t* partial_begin;  ///< [merged rows + 1] into partials
  const int32_t* partials;       ///< partial rows of each of them
  int32_t merged_count;
  int32_t partial_rows;
};

/// Queries (rows × query heads of a key/value head) of a small and of a large block.
constexpr int32_t kSmallBlock = 64, kLargeBlock = 128;

/// out [rows, heads × head_dim] = softmax(q k) v over everything each row sees. `partial_out` is [kv_heads,
/// partial_rows × group, padded_dim], `partial_lse` [kv_heads, partial_rows × group].
void attend(const AttentionInputs& inputs, const HeadLayout& layout, const bf16* q, const bf16* keys,
            const bf16* values, float* partial_out, float* partial_lse, bf16* out, cudaStream_t stream);

/// out[row][i] = silu(gate_up[row][i]) * gate_up[row][ffn + i]
void gated_silu(const bf16* gate_up, int32_t rows, int32_t ffn, bf16* out, cudaStream_t stream);

/// Greedy choice from logits [rows, vocab]: the largest, lowest id on a tie, among allowed[first, first +
/// count) where count > 0; and its log-probability over the whole vocabulary.
struct GreedyPick {
  int32_t first_allowed, allowed_count;
};
struct GreedyResult {
  int32_t token;
  float logprob;
};
void pick_greedy(const float* logits, const GreedyPick* picks, const int32_t* allowed, int32_t rows,
                 int32_t vocab, GreedyResult* out, cudaStream_t stream);

/// Normally distributed weights for benchmarks.
void fill_random(bf16* out, int64_t count, float spread, uint64_t seed, cudaStream_t stream);

}  // namespace sheaf::cuda

#pragma once
// Span attention on any device with fp16 and bf16 matrix units; attention_hopper.cu has the kernel for
// Hopper. A block takes up to 64 or 128 queries (rows × the query heads of one key/value head) and goes over
// a list of pages: those that all its rows see, read once for all of them, then each row's own. No mask is
// stored: a page says how many of its keys which rows see. Where the list is all that its rows see, the
// result is whole; else it is partial, with its log-sum-exp (base 2), and a second kernel merges a row's
// partial results in fp32.
//
// Shapes: a grid of [items, kv_heads] blocks; query m of a block is head m % group of row m / group. A warp
// takes 16 queries, in large blocks 32 (kTiles = 2), so that keys and values read from shared memory serve
// twice as many. A thread has, of each 16 queries, rows lane / 4 and lane / 4 + 8, and of each 8 columns
// (keys of the scores, dimensions of the result) two: lane % 4 × 2 and the next, as mma.sync m16n8k16 has
// them.
//
// Shared memory, all f16, 16-byte chunks swizzled (Tile):
//   q       [kQueries, D]
//   keys 0, values 0, keys 1, values 1    [64, D] each: two stages that cp.async fills in turn
//
// Phases: bring_queries and bring_pages send for the queries and the first 64 keys; then for every 64 keys
//   1. the next 64 are sent for, and those of this stage waited for
//   2. multiply_keys: scores of q × keysᵀ, in base 2 (the queries are scaled)
//   3. cap_scores, where the model has a cap; scale_scores, where documents have a temperature; hide_unseen:
//      scores of keys that a row does not see become -inf, unless all rows see all of them
//   4. soften: scores become weights relative to the highest yet, and what was summed before is shrunk to it
//   5. multiply_values: weights × values are added up
// and at the end write_results: results over their sums, to their rows or as partial results.
//
// The phases are functions that take plain arrays. As members of one struct, as on Hopper, they took up to 66
// registers more, and large heads spilled.
//
// Work: 4 × D FLOPs a query and key; bytes: 4 × D a key and block, so 64 or 128 FLOP per byte read from L2.
#include <type_traits>

#include "cuda/attention/attention.h"
#include "cuda/attention/sinks.h"
#include "cuda/base/device_math.h"

namespace sheaf::cuda {
namespace {

constexpr int kKeys = 64;  // of a stage

__device__ void load4_transposed(uint32_t (&r)[4], const void* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(from)));
}
__device__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// A tile [rows][D] of f16 in shared memory, its 16-byte chunks swizzled so that eight rows of a column fall
/// into different banks.
template <int D>
struct Tile {
  static constexpr int chunks = D / 8;
  f16* data;
  __device__ f16* at(int row, int column) const {
    const int twist = D >= 64 ? row & 7 : (row >> 1) & 3;
    return data + row * D + (((column / 8) ^ twist) * 8);
  }
};

/// Sends for the block's queries. `q` [rows, heads, D].
template <int D, int kQueries, int kThreads>
__device__ void bring_queries(const AttentionInputs& in, const AttentionItem& item, const HeadLayout& layout,
                              const f16* q, int kv_head, int group, Tile<D> q_tile) {
  for (int i = threadIdx.x; i < kQueries * Tile<D>::chunks; i += kThreads) {
    const int m = i / Tile<D>::chunks, column = i % Tile<D>::chunks * 8;
    const bool valid = m < item.row_count * group;
    const int row = valid ? in.rows[item.first_row + m / group] : 0;
    copy16(q_tile.at(m, column), q + (int64_t{row} * layout.heads + kv_head * group + m % group) * D + column,
           valid);
  }
  commit_copies();
}

/// Sends for the keys and values of a stage, whose first page is `first`. `pages` [pages of the item]; `keys`
/// and `values` [slots, D], of one head.
template <int D, int kThreads>
__device__ void bring_pages(const AttentionItem& item, const AttentionPage* pages, int page_size, int first,
                            const f16* keys, const f16* values, Tile<D> k_tile, Tile<D> v_tile) {
  for (int i = threadIdx.x; i < kKeys * Tile<D>::chunks; i += kThreads) {
    const int row = i / Tile<D>::chunks, column = i % Tile<D>::chunks * 8;
    const int page = first + row / page_size, key = row % page_size;
    const bool valid = page < item.page_count && key < pages[page].keys;
    const int64_t slot = valid ? pages[page].slot + key : 0;
    copy16(k_tile.at(row, column), keys + slot * D + column, valid);
    copy16(v_tile.at(row, column), values + slot * D + column, valid);
  }
  commit_copies();
}

/// score [16 kTiles queries, kKeys] += q × keysᵀ, for the warp whose first query is `m0`.
template <int D, int kTiles>
__device__ void multiply_keys(Tile<D> q_tile, Tile<D> k_tile, int m0, int lane,
                              float (&score)[kTiles][kKeys / 8][4]) {
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    uint32_t a[kTiles][4];
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
      load4(a[t], q_tile.at(m0 + t * 16 + lane / 8 % 2 * 8 + lane % 8, k * 16 + lane / 16 * 8));
#pragma unroll
    for (int n = 0; n < kKeys / 16; ++n) {
      uint32_t b[4];
      load4(b, k_tile.at(n * 16 + lane / 16 * 8 + lane % 8, k * 16 + lane / 8 % 2 * 8));
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        multiply(score[t][2 * n], a[t], b[0], b[1]);
        multiply(score[t][2 * n + 1], a[t], b[2], b[3]);
      }
    }
  }
}

/// Whether every row of the block sees every key of the stage whose first page is `first`.
__device__ bool all_seen(int page_size, const AttentionItem& item, const AttentionPage* pages, int first,
                         int lane) {
  const int pages_at_once = kKeys / page_size;
  if (first + pages_at_once > item.page_count) return false;
  bool whole = true;
  if (lane < pages_at_once) {
    const AttentionPage page = pages[first + lane];
    whole = page.keys == page_size && page.base + item.row_offset >= page_size &&
            page.first_row <= item.row_offset && page.last_row >= item.row_offset + item.row_count;
  }
  return __all_sync(0xffffffffu, whole) != 0;
}

/// Whether row `row` of the block sees a key of a stage; it sees none before position `from`.
__device__ bool sees(const AttentionInputs& in, const AttentionItem& item, const AttentionPage* pages,
                     int first, int key, int row, int from) {
  const int at = first + key / in.page_size, inside = key % in.page_size;
  if (at >= item.page_count) return false;
  const AttentionPage page = pages[at];
  return row >= page.first_row && row < page.last_row && inside < min(page.keys, page.base + row) &&
         (in.window == 0 || in.page_positions[item.first_page + at] + inside >= from);
}

/// Scores become cap · tanh(score / cap).
template <int kTiles>
__device__ void cap_scores(float cap, float (&score)[kTiles][kKeys / 8][4]) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) score[t][n][i] = cap * tanhf(score[t][n][i] / cap);
}

template <int kTiles>
__device__ void scale_scores(float factor, float (&score)[kTiles][kKeys / 8][4]) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) score[t][n][i] *= factor;
}

/// Scores of keys that a row does not see become -inf.
template <int kTiles>
__device__ void hide_unseen(const AttentionInputs& in, const AttentionItem& item, const AttentionPage* pages,
                            int first, const int (&row)[kTiles][2], const int (&from)[kTiles][2], int lane,
                            float (&score)[kTiles][kKeys / 8][4]) {
  if (in.window == 0 && all_seen(in.page_size, item, pages, first, lane)) return;
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (!sees(in, item, pages, first, n * 8 + lane % 4 * 2 + i % 2, row[t][i / 2], from[t][i / 2]))
          score[t][n][i] = -INFINITY;
}

/// Scores to weights relative to the highest score yet; the sums of before are shrunk to it.
template <int kTiles, int kColumns>
__device__ void soften(float (&score)[kTiles][kKeys / 8][4], float (&high)[kTiles][2],
                       float (&sum)[kTiles][2], float (&out)[kTiles][kColumns][4]) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float top = high[t][i];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) top = fmaxf(top, fmaxf(score[t][n][2 * i], score[t][n][2 * i + 1]));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
      // Nothing seen yet: exp2(-inf - base) is zero, not NaN.
      const float base = top == -INFINITY ? 0.0f : top;
      const float shrink = fast_exp2(high[t][i] - base);
      high[t][i] = top;
      float added = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        score[t][n][2 * i] = fast_exp2(score[t][n][2 * i] - base);
        score[t][n][2 * i + 1] = fast_exp2(score[t][n][2 * i + 1] - base);
        added += score[t][n][2 * i] + score[t][n][2 * i + 1];
      }
      sum[t][i] = sum[t][i] * shrink + added;
#pragma unroll
      for (int n = 0; n < kColumns; ++n) {
        out[t][n][2 * i] *= shrink;
        out[t][n][2 * i + 1] *= shrink;
      }
    }
  }
}

/// The highest score yet, of this thread's keys.
template <int kTiles>
__device__ void raise_high(const float (&score)[kTiles][kKeys / 8][4], float (&high)[kTiles][2]) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) high[t][i / 2] = fmaxf(high[t][i / 2], score[t][n][i]);
}

/// Scores to weights relative to the highest of all, added up one after the other.
template <int kTiles>
__device__ void soften_in_order(float (&score)[kTiles][kKeys / 8][4], const float (&high)[kTiles][2],
                                float (&sum)[kTiles][2]) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float top = high[t][i / 2];
        score[t][n][i] = fast_exp2(score[t][n][i] - (top == -INFINITY ? 0.0f : top));
        sum[t][i / 2] += score[t][n][i];
      }
}

/// out [16 kTiles queries, D] += weights × values.
template <int D, int kTiles>
__device__ void multiply_values(Tile<D> v_tile, int lane, const float (&weight)[kTiles][kKeys / 8][4],
                                float (&out)[kTiles][D / 8][4]) {
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    uint32_t p[kTiles][4];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      p[t][0] = pack_weights(weight[t][2 * k][0], weight[t][2 * k][1]);
      p[t][1] = pack_weights(weight[t][2 * k][2], weight[t][2 * k][3]);
      p[t][2] = pack_weights(weight[t][2 * k + 1][0], weight[t][2 * k + 1][1]);
      p[t][3] = pack_weights(weight[t][2 * k + 1][2], weight[t][2 * k + 1][3]);
    }
#pragma unroll
    for (int n = 0; n < D / 16; ++n) {
      uint32_t b[4];
      load4_transposed(b, v_tile.at(k * 16 + lane / 8 % 2 * 8 + lane % 8, n * 16 + lane / 16 * 8));
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        multiply(out[t][2 * n], p[t], b[0], b[1]);
        multiply(out[t][2 * n + 1], p[t], b[2], b[3]);
      }
    }
  }
}

/// A block's queries as a thread sees them.
struct Queries {
  int kv_head;
  int group;  ///< query heads of a key/value head
  int count;
  int m0;  ///< the first one of this warp
  int lane;
};

/// Results over their sums: to their rows of the output where they are whole, else to the partial results.
/// A sink counts where a result is whole; merge_kernel() adds it to the others.
template <int D, bool kSinks, int kTiles>
__device__ void write_results(const AttentionInputs& in, const AttentionItem& item, const HeadLayout& layout,
                              const AttentionTensors& tensors, const Queries& mine,
                              const float (&high)[kTiles][2], const float (&sum)[kTiles][2],
                              const float (&out)[kTiles][D / 8][4]) {
  const auto [kv_head, group, queries, m0, lane] = mine;
  const int64_t base_query = (int64_t{kv_head} * in.partial_rows + item.first_partial) * group;
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float total = sum[t][i];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      const int m = m0 + t * 16 + lane / 4 + 8 * i;
      if (m >= queries) continue;
      const float scale = total > 0 ? 1.0f / total : 0.0f;
      float share = 1;
      if constexpr (kSinks)
        share = share_of_keys(1, tensors.sinks[kv_head * group + m % group], log_sum(high[t][i], total));
      if (item.first_partial < 0) {
        const int64_t to_row = in.rows[item.first_row + m / group];
        bf16* to = tensors.out + (to_row * layout.heads + kv_head * group + m % group) * layout.head_dim +
                   lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
          if (n * 8 + lane % 4 * 2 < layout.head_dim)
            *reinterpret_cast<uint32_t*>(to + n * 8) =
                pack(out[t][n][2 * i] * scale * share, out[t][n][2 * i + 1] * scale * share);
        continue;
      }
      float* to = tensors.partial_out + (base_query + m) * D + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < D / 8; ++n)
        *reinterpret_cast<float2*>(to + n * 8) =
            make_float2(out[t][n][2 * i] * scale, out[t][n][2 * i + 1] * scale);
      if (lane % 4 == 0) tensors.partial_lse[base_query + m] = log_sum(high[t][i], total);
    }
  }
}

/// D: dimensions of a head; kTiles: groups of 16 queries that a warp takes. `items` [blocks of the grid];
/// `factor`: none, or one float that scores are multiplied by.
template <int D, int kQueries, int kTiles, bool kSinks, class... Factor>
__global__ __launch_bounds__(2 * kQueries /
                             kTiles) void attend_kernel(AttentionInputs in, const AttentionItem* items,
                                                        HeadLayout layout, AttentionTensors tensors,
                                                        Factor... factor) {
  constexpr int kThreads = 2 * kQueries / kTiles;
  extern __shared__ __align__(128) uint8_t memory[];
  const Tile<D> q_tile{reinterpret_cast<f16*>(memory)};
  auto tile = [&](int index) {
    return Tile<D>{reinterpret_cast<f16*>(memory) + (kQueries + index * kKeys) * D};
  };

  const AttentionItem item = items[blockIdx.x];
  const AttentionPage* pages = in.pages + item.first_page;
  const int kv_head = blockIdx.y;
  const int group = layout.heads / layout.kv_heads;
  const int queries = item.row_count * group;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const f16* head_keys = tensors.keys + int64_t{kv_head} * layout.slots * D;
  const f16* head_values = tensors.values + int64_t{kv_head} * layout.slots * D;
  const int pages_at_once = kKeys / in.page_size;
  auto bring_stage = [&](int first, int stage) {
    bring_pages<D, kThreads>(item, pages, in.page_size, first, head_keys, head_values, tile(2 * stage),
                             tile(2 * stage + 1));
  };

  bring_queries<D, kQueries, kThreads>(in, item, layout, tensors.q, kv_head, group, q_tile);
  bring_stage(0, 0);
  wait_copies<1>();
  __syncthreads();

  const int m0 = warp * 16 * kTiles;  // the warp's first query
  const bool busy = m0 < queries;
  int row[kTiles][2];   // of this thread's queries, as pages count rows
  int from[kTiles][2];  // the first position that they see
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int at = (m0 + t * 16 + lane / 4 + 8 * i) / group;
      row[t][i] = item.row_offset + at;
      from[t][i] = in.window > 0 && at < item.row_count
                       ? in.row_positions[in.rows[item.first_row + at]] - in.window + 1
                       : 0;
    }

  float out[kTiles][D / 8][4] = {};
  float high[kTiles][2], sum[kTiles][2];
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    high[t][0] = high[t][1] = -INFINITY;
    sum[t][0] = sum[t][1] = 0;
  }
  int stage = 0;
  // In order: once over all stages for the highest scores, and once more for the sums.
  for (int pass = in.in_order ? 0 : 1; pass < 2; ++pass) {
    for (int first = 0; first < item.page_count; first += pages_at_once) {
      const bool last = first + pages_at_once >= item.page_count;
      if (!last || pass == 0) {
        bring_stage(last ? 0 : first + pages_at_once, stage ^ 1);
        wait_copies<1>();
      } else {
        wait_copies<0>();
      }
      __syncthreads();
      if (busy) {
        float score[kTiles][kKeys / 8][4] = {};
        multiply_keys(q_tile, tile(2 * stage), m0, lane, score);
        if (layout.score_cap > 0) cap_scores(layout.score_cap, score);
        (scale_scores(factor, score), ...);
        hide_unseen(in, item, pages, first, row, from, lane, score);
        if (pass == 0) {
          raise_high(score, high);
        } else {
          if (in.in_order)
            soften_in_order(score, high, sum);
          else
            soften(score, high, sum, out);
          multiply_values(tile(2 * stage + 1), lane, score, out);
        }
      }
      __syncthreads();
      stage ^= 1;
    }
    if (pass > 0) break;
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        high[t][i] = fmaxf(high[t][i], __shfl_xor_sync(0xffffffffu, high[t][i], 1));
        high[t][i] = fmaxf(high[t][i], __shfl_xor_sync(0xffffffffu, high[t][i], 2));
      }
  }

  write_results<D, kSinks>(in, item, layout, tensors, {kv_head, group, queries, m0, lane}, high, sum, out);
}

constexpr int kMergeBlocks = 1024;

/// Partial results over documents as a merge sees them.
struct DocumentPartials {
  int32_t first;  ///< partial rows from here on
  float scale;    ///< the power of what all of a row's documents weigh together

  /// What is added to their log-sum-exps, `lse(i)` of the row's partial results [begin, end).
  template <class Lse>
  __device__ float shift(const AttentionInputs& in, int begin, int end, Lse&& lse) const {
    float high = -INFINITY, sum = 0;
    for (int i = begin; i < end; ++i)
      if (in.partials[i] >= first) high = fmaxf(high, lse(i));
    if (high == -INFINITY) return 0;
    for (int i = begin; i < end; ++i)
      if (in.partials[i] >= first) sum += exp2f(lse(i) - high);
    return (scale - 1) * log_sum(high, sum);
  }
};

/// A block takes row after row, a warp head after head. `inputs` [1], `partial_out` [kv_heads, partial_rows ×
/// group, D], `partial_lse` [kv_heads, partial_rows × group], `out` [rows, heads × head_dim], or `out8`
/// instead; `sinks` [heads], where there are any; `documents`: none, or DocumentPartials.
template <int D, bool kSinks, class... Documents>
__global__ void merge_kernel(const AttentionInputs* inputs, HeadLayout layout, const float* partial_out,
                             const float* partial_lse, bf16* out, Fp8Rows out8, const float* sinks,
                             Documents... documents) {
  const AttentionInputs& in = *inputs;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int group = layout.heads / layout.kv_heads;
  for (int merged = blockIdx.x; merged < in.merged_count; merged += gridDim.x) {
    const int row = in.merged_rows[merged];
    const int begin = in.partial_begin[merged], end = in.partial_begin[merged + 1];
    for (int head = warp; head < layout.heads; head += static_cast<int>(blockDim.x) / 32) {
      auto query = [&](int i) {
        return (int64_t{head / group} * in.partial_rows + in.partials[i]) * group + head % group;
      };
      float shift = 0;
      ((shift = documents.shift(in, begin, end, [&](int i) { return partial_lse[query(i)]; })), ...);
      auto lse = [&](int i) {
        const float own = partial_lse[query(i)];
        return ((in.partials[i] >= documents.first) || ...) ? own + shift : own;
      };
      float high = -INFINITY;
      for (int i = begin; i < end; ++i) high = fmaxf(high, lse(i));
      float result[D / 32] = {};
      float sum = 0;
      for (int i = begin; i < end; ++i) {
        const int64_t at = query(i);
        const float weight = exp2f(lse(i) - high);
        sum += weight;
#pragma unroll
        for (int j = 0; j < D / 32; ++j) result[j] += weight * partial_out[at * D + j * 32 + lane];
      }
      if constexpr (kSinks) {
        const float share = share_of_keys(sum, sinks[head], high);
#pragma unroll
        for (int j = 0; j < D / 32; ++j) result[j] *= share;
        sum = 1;
      }
      const int64_t place = int64_t{row} * layout.heads + head;
      if (out8.values != nullptr) {
        float most = 0;
#pragma unroll
        for (int j = 0; j < D / 32; ++j) most = fmaxf(most, fabsf(result[j] / sum));
        for (int offset = 16; offset > 0; offset /= 2)
          most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
        const Fp8Scale scale = Fp8Scale::coarse(most);
        if (lane == 0) out8.blocks[place] = scale.scale;
#pragma unroll
        for (int j = 0; j < D / 32; ++j)
          out8.values[place * D + j * 32 + lane].__x =
              static_cast<uint8_t>(pack_e4m3(result[j] / sum * scale.inverse, 0));
        continue;
      }
      bf16* to = out + place * layout.head_dim;
#pragma unroll
      for (int j = 0; j < D / 32; ++j)
        if (j * 32 + lane < layout.head_dim) to[j * 32 + lane] = __float2bfloat16(result[j] / sum);
    }
  }
}

template <int D, int kQueries, int kTiles, bool kSinks, class... Factor>
void launch_blocks(const AttentionInputs& in, const AttentionItem* items, int32_t count,
                   const HeadLayout& layout, const AttentionTensors& tensors, cudaStream_t stream,
                   Factor... factor) {
  if (count == 0) return;
  constexpr int shared = (kQueries + 4 * kKeys) * D * static_cast<int>(sizeof(f16));
  cudaFuncSetAttribute(attend_kernel<D, kQueries, kTiles, kSinks, Factor...>,
                       cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  const dim3 grid(static_cast<unsigned>(count), static_cast<unsigned>(layout.kv_heads));
  attend_kernel<D, kQueries, kTiles, kSinks, Factor...>
      <<<grid, 2 * kQueries / kTiles, shared, stream>>>(in, items, layout, tensors, factor...);
}

/// Blocks on any device; `items`: small ones, then large ones.
template <int D, bool kSinks, class... Factor>
void launch_all(const AttentionInputs& in, const AttentionItem* items, int32_t small, int32_t large,
                const HeadLayout& layout, const AttentionTensors& tensors, cudaStream_t stream,
                Factor... factor) {
  // Heads of 256 leave no registers for 32 queries a warp.
  launch_blocks<D, kLargeBlock, D <= 128 ? 2 : 1, kSinks>(in, items + small, large, layout, tensors, stream,
                                                          factor...);
  launch_blocks<D, kSmallBlock, 1, kSinks>(in, items, small, layout, tensors, stream, factor...);
}

template <int D, bool kSinks, class... Documents>
void launch_merge(const AttentionInputs& in, const AttentionInputs* on_device, const HeadLayout& layout,
                  const AttentionTensors& tensors, cudaStream_t stream, Documents... documents) {
  if (in.merged_count > 0)
    merge_kernel<D, kSinks><<<kMergeBlocks, 256, 0, stream>>>(on_device, layout, tensors.partial_out,
                                                              tensors.partial_lse, tensors.out, tensors.out8,
                                                              tensors.sinks, documents...);
}

template <int D, bool kSinks>
void launch(const AttentionInputs& in, const AttentionInputs* on_device, const HeadLayout& layout,
            const AttentionTensors& tensors, cudaStream_t stream) {
  if (!attend_hopper(in, on_device, layout, tensors, stream))
    launch_all<D, kSinks>(in, in.items, in.small_items, in.large_items, layout, tensors, stream);
  launch_merge<D, kSinks>(in, on_device, layout, tensors, stream);
}

/// Calls launch(std::integral_constant<int, D>) for heads of `padded_dim`.
template <class Launch>
void for_heads(int32_t padded_dim, Launch&& launch) {
  switch (padded_dim) {
    case 32:
      return launch(std::integral_constant<int, 32>{});
    case 64:
      return launch(std::integral_constant<int, 64>{});
    case 128:
      return launch(std::integral_constant<int, 128>{});
    default:
      return launch(std::integral_constant<int, 256>{});
  }
}

template <bool kSinks>
void attend_as(const AttentionInputs& inputs, const AttentionInputs* on_device, const HeadLayout& layout,
               const AttentionTensors& tensors, cudaStream_t stream) {
  for_heads(layout.padded_dim, [&](auto dim) {
    launch<decltype(dim)::value, kSinks>(inputs, on_device, layout, tensors, stream);
  });
}

}  // namespace
}  // namespace sheaf::cuda

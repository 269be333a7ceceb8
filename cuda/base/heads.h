#pragma once
#include <cstdint>

#include "cuda/base/floats.h"

namespace sheaf::cuda {

/// How heads lie in a row of queries, keys and values, and what happens to them before attention.
struct HeadLayout {
  int32_t heads, kv_heads, head_dim;
  int32_t padded_dim;  ///< head_dim as attention sees it; the rest is zero
  int32_t rotary_dim;
  int32_t norm;  ///< 0 none, 1 per head, 2 over the whole projection
  float eps;
  float query_scale;    ///< 1/sqrt(head_dim) and log2(e), folded into the queries
  float score_cap = 0;  ///< scores become cap · tanh(score / cap), in base 2; 0: they stay
  int64_t slots;        ///< of the pool

  /// Columns of a row of queries, keys and values.
  int64_t columns() const { return int64_t{heads + 2 * kv_heads} * head_dim; }
};

/// Slots whose values in e4m3 lie together, a page of the Hopper kernel.
constexpr int32_t kNarrowPage = 16;
/// Where the value of a slot lies among those of its page: the matrix unit gives a thread the scores of keys
/// 2i, 2i + 1, 2i + 8 and 2i + 9, and wants the values of its weights side by side.
__host__ __device__ constexpr int narrow_place(int64_t slot) {
  const int key = static_cast<int>(slot % kNarrowPage);
  return key % 8 / 2 * 4 + key / 8 * 2 + key % 2;
}
/// Which key of a page a place of narrow_place() is of.
__host__ __device__ constexpr int narrow_key(int place) {
  return place / 4 * 2 + place % 4 / 2 * 8 + place % 2;
}

/// Keys and values of a layer in e4m3. Their scales, and those of queries, come from the weights, which bound
/// them: see head_scales(). Keys are there without their bias, which can be a hundred times as large (Qwen
/// 2.5): three bits of it would be no better than noise.
struct NarrowKeys {
  e4m3* keys = nullptr;           ///< [kv_heads, slots, padded_dim]
  e4m3* values = nullptr;         ///< [kv_heads, slots / kNarrowPage, padded_dim, kNarrowPage]
  const float* scales = nullptr;  ///< [heads + 2 kv_heads] of queries, keys and values
  const float* bias = nullptr;    ///< [kv_heads, head_dim], of keys before they are rotated, or null
  /// [slots, rotary_dim], with a bias: how a slot's key is rotated, cosines, then sines.
  float* turns = nullptr;
};

/// Where the heads of a step's rows go, and what happens to them first: biases are added, then queries and
/// keys are normed and rotated.
struct HeadTargets {
  const float* bias;    ///< [(heads + 2 kv_heads) × head_dim], or null
  const float* q_norm;  ///< [head_dim], or [heads × head_dim] where the norm is over the whole projection
  const float* k_norm;  ///< [head_dim], or [kv_heads × head_dim] likewise
  const float* rope;    ///< [rows, rotary_dim], cosines then sines
  const int32_t* kv_slots;  ///< [rows], where a row's key and value go in the pool
  HeadLayout layout;
  f16* q;              ///< [rows, heads, padded_dim]
  f16* keys;           ///< [kv_heads, slots, padded_dim], the layer's part of the pool
  f16* values;         ///< [kv_heads, slots, padded_dim], the layer's part of the pool
  e4m3* q8 = nullptr;  ///< [rows, heads, padded_dim], where not null instead of `q`, and `narrow` instead of
                       ///< `keys` and `values`, if the product can do that
  NarrowKeys narrow = {};
};

}  // namespace sheaf::cuda

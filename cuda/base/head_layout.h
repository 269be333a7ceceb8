#pragma once
#include <cstdint>

namespace sheaf::cuda {

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

}  // namespace sheaf::cuda

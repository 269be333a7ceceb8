#pragma once
#include <cstdint>
#include <vector>

#include "core/engine/step_batch.h"
#include "cuda/ops.h"

namespace sheaf::cuda {

/// The tiles of a step cut into blocks of work, the same for every layer.
struct AttentionPlan {
  std::vector<AttentionRange> ranges;
  std::vector<AttentionItem> items;  ///< small blocks, then large ones
  int32_t small_items = 0;
  std::vector<int32_t> merged_rows;
  std::vector<int32_t> partial_begin;  ///< [merged rows + 1]
  std::vector<int32_t> partials;
  int32_t partial_rows = 0;
};

/// Rows of one segment see the same spans: a block of them goes over all those spans at once and needs no
/// merge. Rows that stand alone (decoding) are gathered span by span instead, so that a shared span is read
/// once for all of them, and merged. `group` is the number of query heads of a key/value head;
/// `blocks_wanted` fill the device: where there are fewer, long spans are cut.
void plan_attention(const StepBatch& batch, int32_t group, int32_t blocks_wanted, AttentionPlan& plan);

}  // namespace sheaf::cuda

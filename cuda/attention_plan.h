#pragma once
#include <cstdint>
#include <vector>

#include "core/engine/step_batch.h"
#include "cuda/ops.h"

namespace sheaf::cuda {

/// The tiles of a step cut into blocks of work, the same for every layer.
struct AttentionPlan {
  std::vector<AttentionItem> items;
  std::vector<int32_t> partial_begin;  ///< [rows + 1]
  std::vector<int32_t> partials;       ///< partial rows of each row
  int32_t partial_rows = 0;
};

/// Cuts tiles into blocks of at most `block_rows` rows and, where there are too few of them to fill `blocks_wanted`, long
/// spans into ranges of keys.
void plan_attention(const StepBatch& batch, int32_t block_rows, int32_t blocks_wanted, AttentionPlan& plan);

}  // namespace sheaf::cuda

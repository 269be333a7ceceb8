#include "cuda/attention_plan.h"

#include <algorithm>

namespace sheaf::cuda {
namespace {

constexpr int32_t kKeyStep = 64;        // keys a block reads at once; ranges start at multiples of it
constexpr int32_t kShortestRange = 256;  // below this the merge costs more than the split gains

}  // namespace

void plan_attention(const StepBatch& batch, int32_t block_rows, int32_t blocks_wanted, AttentionPlan& plan) {
  plan.items.clear();
  // First the blocks with all their keys; `visible` may differ between rows, the block reads up to the largest.
  int64_t key_steps = 0;
  for (const AttentionTile& tile : batch.tiles) {
    for (int32_t first = 0; first < tile.row_count; first += block_rows) {
      const int32_t count = std::min(block_rows, tile.row_count - first);
      int32_t keys = 0;
      for (int32_t i = 0; i < count; ++i)
        keys = std::max(keys, batch.tile_rows[static_cast<size_t>(tile.first_row + first + i)].visible);
      if (keys == 0) continue;
      plan.items.push_back({tile.first_row + first, count, batch.spans[static_cast<size_t>(tile.span)].first_page, 0, keys, 0});
      key_steps += (keys + kKeyStep - 1) / kKeyStep;
    }
  }
  // A range no longer than an even share keeps every multiprocessor busy to the end.
  const int64_t share = std::max<int64_t>(1, key_steps / std::max(1, blocks_wanted)) * kKeyStep;
  const auto range = static_cast<int32_t>(std::max<int64_t>(kShortestRange, share));
  const size_t whole = plan.items.size();
  for (size_t i = 0; i < whole; ++i) {
    const int32_t last = plan.items[i].last_key;
    if (last <= range + range / 2) continue;
    plan.items[i].last_key = range;
    for (int32_t key = range; key < last; key += range) {
      AttentionItem part = plan.items[i];
      part.first_key = key;
      part.last_key = std::min(last, key + range);
      plan.items.push_back(part);
    }
  }
  // Longest first, so that the last blocks to run are short ones.
  std::stable_sort(plan.items.begin(), plan.items.end(), [](const AttentionItem& a, const AttentionItem& b) {
    return a.last_key - a.first_key > b.last_key - b.first_key;
  });

  plan.partial_rows = 0;
  plan.partial_begin.assign(static_cast<size_t>(batch.rows()) + 1, 0);
  for (AttentionItem& item : plan.items) {
    item.first_partial = plan.partial_rows;
    plan.partial_rows += item.row_count;
    for (int32_t i = 0; i < item.row_count; ++i)
      ++plan.partial_begin[static_cast<size_t>(batch.tile_rows[static_cast<size_t>(item.first_row + i)].row) + 1];
  }
  for (size_t row = 0; row < static_cast<size_t>(batch.rows()); ++row) plan.partial_begin[row + 1] += plan.partial_begin[row];
  plan.partials.resize(static_cast<size_t>(plan.partial_rows));
  std::vector<int32_t> next(plan.partial_begin.begin(), plan.partial_begin.end() - 1);
  for (const AttentionItem& item : plan.items)
    for (int32_t i = 0; i < item.row_count; ++i)
      plan.partials[static_cast<size_t>(next[static_cast<size_t>(
          batch.tile_rows[static_cast<size_t>(item.first_row + i)].row)]++)] = item.first_partial + i;
}

}  // namespace sheaf::cuda

#include "core/estimate/step_counts.h"

#include <algorithm>

namespace sheaf {
namespace {

constexpr int64_t kBlock = 64;

}  // namespace

StepCounts count_step(const StepBatch& batch, int32_t group) {
  int64_t pairs = 0, cells = 0, keys = 0;
  for (const AttentionTile& tile : batch.tiles) {
    const TileRow* row = batch.tile_rows.data() + tile.first_row;
    int64_t seen = 0;
    int32_t most = 0;
    for (int32_t i = 0; i < tile.row_count; ++i) {
      seen += row[i].visible;
      most = std::max(most, row[i].visible);
    }
    const int64_t queries = int64_t{tile.row_count} * group;
    pairs += seen * group;
    // Fewer queries than a block share it with others that see none of these keys.
    cells += queries < kBlock ? kBlock * most
                              : seen * group * ((queries + kBlock - 1) / kBlock * kBlock) / queries;
    keys += batch.spans[static_cast<size_t>(tile.span)].keys;
  }
  StepCounts counts;
  counts.tokens = batch.rows();
  counts.decode_tokens = batch.decode_tokens;
  counts.picks = static_cast<double>(batch.picks.size());
  counts.pairs = static_cast<double>(pairs);
  counts.cells = static_cast<double>(cells);
  counts.blocks = counts.tokens * group / kBlock;
  counts.spans = static_cast<double>(batch.tiles.size());
  counts.keys = static_cast<double>(keys);
  counts.looks = static_cast<double>(batch.tile_rows.size());
  return counts;
}

}  // namespace sheaf

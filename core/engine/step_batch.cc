#include "core/engine/step_batch.h"

#include <algorithm>

namespace sheaf {
namespace {

StepBatch cut_rows(const StepBatch& batch, int32_t first, int32_t end) {
  StepBatch part;
  auto copy = [&](const std::vector<int32_t>& from, std::vector<int32_t>& to) {
    to.assign(from.begin() + first, from.begin() + end);
  };
  copy(batch.tokens, part.tokens);
  copy(batch.positions, part.positions);
  copy(batch.kv_slots, part.kv_slots);
  part.decode_tokens = std::clamp(batch.decode_tokens - first, 0, end - first);
  part.copies = batch.copies;  // those whose keys come later are made again then
  part.pages = batch.pages;
  part.allowed = batch.allowed;
  for (const AttentionTile& tile : batch.tiles) {
    AttentionTile cut{static_cast<int32_t>(part.spans.size()), static_cast<int32_t>(part.tile_rows.size()),
                      0};
    int32_t keys = 0;  // those further on may not be written yet
    for (int32_t i = tile.first_row; i < tile.first_row + tile.row_count; ++i) {
      const TileRow& look = batch.tile_rows[static_cast<size_t>(i)];
      if (look.row < first || look.row >= end) continue;
      part.tile_rows.push_back({look.row - first, look.visible});
      keys = std::max(keys, look.visible);
      ++cut.row_count;
    }
    if (cut.row_count == 0) continue;
    part.tiles.push_back(cut);
    part.spans.push_back({batch.spans[static_cast<size_t>(tile.span)].first_page, keys});
  }
  for (Pick pick : batch.picks) {
    if (pick.row < first || pick.row >= end) continue;
    pick.row -= first;
    part.picks.push_back(pick);
  }
  return part;
}

}  // namespace

int32_t middle_row(const StepBatch& batch) {
  const int32_t middle = batch.rows() / 2;
  for (size_t i = 0; i < batch.picks.size(); ++i) {
    const int32_t first = batch.picks[i].row;
    const int32_t last = batch.picks[i + static_cast<size_t>(batch.picks[i].chains)].row;
    if (first < middle && middle <= last) return first > 0 ? first : last + 1 < batch.rows() ? last + 1 : 0;
  }
  return middle;
}

size_t picks_end(const std::vector<Pick>& picks, size_t first, size_t most) {
  size_t end = first;
  while (end < picks.size()) {
    const size_t next = end + 1 + static_cast<size_t>(picks[end].chains);
    if (end > first && next - first > most) break;
    end = next;
  }
  return end;
}

size_t most_picks_together(const std::vector<Pick>& picks, size_t most) {
  size_t largest = 0;
  for (size_t first = 0; first < picks.size();) {
    const size_t end = picks_end(picks, first, most);
    largest = std::max(largest, end - first);
    first = end;
  }
  return largest;
}

std::pair<StepBatch, StepBatch> split_batch(const StepBatch& batch, int32_t rows) {
  return {cut_rows(batch, 0, rows), cut_rows(batch, rows, batch.rows())};
}

void StepBatch::clear() {
  tokens.clear();
  positions.clear();
  kv_slots.clear();
  copies.clear();
  pages.clear();
  spans.clear();
  tile_rows.clear();
  tiles.clear();
  picks.clear();
  allowed.clear();
  decode_tokens = 0;
}

}  // namespace sheaf

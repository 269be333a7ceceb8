#include "core/engine/step_batch.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/model/config.h"

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
  for (const RowRun& run : batch.shared_rows) {
    const int32_t from = std::max(run.first, first), to = std::min(run.first + run.count, end);
    if (from < to) part.shared_rows.push_back({from - first, to - from});
  }
  part.copies = batch.copies;  // a copy whose keys come later is made again then
  part.pages = batch.pages;
  part.allowed = batch.allowed;
  part.document_softmax = batch.document_softmax;
  for (const AttentionTile& tile : batch.tiles) {
    AttentionTile cut{static_cast<int32_t>(part.spans.size()), static_cast<int32_t>(part.tile_rows.size()), 0,
                      tile.apart};
    int32_t keys = 0;  // keys further on may not be written yet
    for (int32_t i = tile.first_row; i < tile.first_row + tile.row_count; ++i) {
      const TileRow& look = batch.tile_rows[i];
      if (look.row < first || look.row >= end) continue;
      part.tile_rows.push_back({look.row - first, look.visible});
      keys = std::max(keys, look.visible);
      ++cut.row_count;
    }
    if (cut.row_count == 0) continue;
    part.tiles.push_back(cut);
    KeySpan span = batch.spans[tile.span];
    span.keys = keys;
    part.spans.push_back(span);
  }
  for (Pick pick : batch.picks) {
    if (pick.row < first || pick.row >= end) continue;
    pick.row -= first;
    part.picks.push_back(pick);
  }
  return part;
}

void check_rows(const StepBatch& batch, const ModelConfig& config, int64_t slots) {
  const size_t rows = batch.tokens.size();
  if (batch.positions.size() != rows || batch.kv_slots.size() != rows)
    fail("step batch: there are {} tokens, but {} positions and {} key/value slots", rows,
         batch.positions.size(), batch.kv_slots.size());
  for (size_t i = 0; i < rows; ++i) {
    if (batch.tokens[i] < 0 || batch.tokens[i] >= config.vocab)
      fail("step batch: token {} has the id {}, outside the vocabulary of {}", i, batch.tokens[i],
           config.vocab);
    if (batch.positions[i] < 0) fail("step batch: token {} has the position {}", i, batch.positions[i]);
    if (batch.kv_slots[i] < 0 || batch.kv_slots[i] >= slots)
      fail("step batch: token {} writes slot {} of a pool of {}", i, batch.kv_slots[i], slots);
  }
  for (const KeyCopy& copy : batch.copies)
    if (copy.from < 0 || copy.from >= slots || copy.to < 0 || copy.to >= slots)
      fail("step batch: slot {} is to be copied to {} of a pool of {}", copy.from, copy.to, slots);
}

void check_spans(const StepBatch& batch, int32_t pages, int32_t page_size) {
  for (const int32_t page : batch.pages)
    if (page < 0 || page >= pages) fail("step batch: page {} of a pool of {} pages", page, pages);
  const auto listed = static_cast<int64_t>(batch.pages.size());
  for (size_t i = 0; i < batch.spans.size(); ++i) {
    const KeySpan& span = batch.spans[i];
    if (span.first_page < 0 || span.keys < 0)
      fail("step batch: span {} starts at page entry {} and has {} keys", i, span.first_page, span.keys);
    const int64_t needed = (int64_t{span.keys} + page_size - 1) / page_size;
    if (span.first_page + needed > listed)
      fail("step batch: span {} of {} keys needs {} pages from entry {} on, but {} are listed", i, span.keys,
           needed, span.first_page, listed);
  }
}

void check_tiles(const StepBatch& batch) {
  const int32_t rows = batch.rows();
  const auto tile_rows = static_cast<int64_t>(batch.tile_rows.size());
  for (const float part : {batch.document_softmax.temperature, batch.document_softmax.scale})
    if (!(part > 0 && part <= 1)) fail("step batch: a softmax of documents by {}", part);
  std::vector<int64_t> last_tile(static_cast<size_t>(rows), -1);
  for (size_t i = 0; i < batch.tiles.size(); ++i) {
    const AttentionTile& tile = batch.tiles[i];
    if (tile.span < 0 || static_cast<size_t>(tile.span) >= batch.spans.size())
      fail("step batch: tile {} reads span {} of {}", i, tile.span, batch.spans.size());
    if (tile.first_row < 0 || tile.row_count < 0 || int64_t{tile.first_row} + tile.row_count > tile_rows)
      fail("step batch: tile {} has {} rows from entry {} on, but {} are listed", i, tile.row_count,
           tile.first_row, tile_rows);
    const int32_t keys = batch.spans[tile.span].keys;
    for (int32_t j = 0; j < tile.row_count; ++j) {
      const TileRow& entry = batch.tile_rows[static_cast<size_t>(tile.first_row) + static_cast<size_t>(j)];
      if (entry.row < 0 || entry.row >= rows)
        fail("step batch: tile {} names row {} of {}", i, entry.row, rows);
      if (entry.visible < 0 || entry.visible > keys)
        fail("step batch: in tile {} row {} sees {} keys of {}", i, entry.row, entry.visible, keys);
      int64_t& last = last_tile[entry.row];
      if (last == static_cast<int64_t>(i)) fail("step batch: tile {} names row {} twice", i, entry.row);
      last = static_cast<int64_t>(i);
    }
  }
}

void check_picks(const StepBatch& batch, const ModelConfig& config) {
  int32_t last = 0;
  for (size_t i = 0; i < batch.picks.size(); ++i) {
    const Pick& pick = batch.picks[i];
    if (pick.row < last || pick.row >= batch.rows())
      fail("step batch: pick {} wants token {} of {}, after token {}", i, pick.row, batch.rows(), last);
    last = pick.row;
    if (pick.first_allowed < 0 || pick.allowed_count < 0 ||
        int64_t{pick.first_allowed} + pick.allowed_count > static_cast<int64_t>(batch.allowed.size()))
      fail("step batch: pick {} allows {} tokens from entry {} on, but {} are listed", i, pick.allowed_count,
           pick.first_allowed, batch.allowed.size());
    if (pick.chains < 0 || i + static_cast<size_t>(pick.chains) >= batch.picks.size())
      fail("step batch: pick {} has {} chains, but {} picks follow it", i, pick.chains,
           batch.picks.size() - i - 1);
    for (size_t j = 1; j <= static_cast<size_t>(pick.chains); ++j)
      if (batch.picks[i + j].chains != 0 || !std::isfinite(batch.picks[i + j].prior))
        fail("step batch: pick {}, a chain of pick {}, has chains of its own or no prior", i + j, i);
    if (!std::isfinite(pick.contrast)) fail("step batch: pick {} has no contrast", i);
    if (pick.watch >= config.vocab || !std::isfinite(pick.bias))
      fail("step batch: pick {} watches token {} of a vocabulary of {} with a bias of {}", i, pick.watch,
           config.vocab, pick.bias);
    const auto allowed =
        std::span(batch.allowed)
            .subspan(static_cast<size_t>(pick.first_allowed), static_cast<size_t>(pick.allowed_count));
    if (pick.watch >= 0 && !allowed.empty() && !std::ranges::binary_search(allowed, pick.watch))
      fail("step batch: pick {} watches token {}, which is not allowed", i, pick.watch);
  }
  for (const TokenId token : batch.allowed)
    if (token < 0 || token >= config.vocab)
      fail("step batch: allowed token {} is outside the vocabulary of {}", token, config.vocab);
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
  document_softmax = {};
  picks.clear();
  allowed.clear();
  decode_tokens = 0;
  shared_rows.clear();
}

void check_batch(const StepBatch& batch, const ModelConfig& config, int32_t pages, int32_t page_size) {
  if (pages <= 0 || page_size <= 0)
    fail("step batch: the key/value pool was not allocated before the first step");
  check_rows(batch, config, int64_t{pages} * page_size);
  check_spans(batch, pages, page_size);
  check_tiles(batch);
  check_picks(batch, config);
}

}  // namespace sheaf

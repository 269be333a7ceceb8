#include "cpu/attention_plan.h"

#include <algorithm>
#include <numeric>

namespace sheaf {
namespace {

// Scores of a block that stay in the second cache. Blocks of fewer heads than kernels fetch keys ahead for
// may have more: reading the scores again costs less than waiting for the keys.
constexpr int64_t kScoresPerBlock = 128 * 1024, kMostScoresPerBlock = 8 * kScoresPerBlock;
constexpr int64_t kFewHeads = 24;
// Rows beyond which sharing a span's reads gains nothing more.
constexpr int32_t kMostRowsPerBlock = 64;

struct RowLook {
  int32_t tile;
  int32_t first, visible;
  int32_t offset;  ///< of key 0, which may be hidden
};

/// What each row looks at, row by row.
struct RowLooks {
  std::vector<int32_t> first;  ///< [rows + 1], index into looks
  std::vector<RowLook> looks;

  std::span<const RowLook> of(int32_t row) const {
    const auto r = static_cast<size_t>(row);
    return std::span(looks).subspan(static_cast<size_t>(first[r]),
                                    static_cast<size_t>(first[r + 1] - first[r]));
  }
};

RowLooks sort_by_row(const StepBatch& batch, int32_t window, std::vector<int32_t>& keys) {
  RowLooks result;
  const size_t rows = batch.tokens.size();
  result.first.assign(rows + 1, 0);
  keys.assign(rows, 0);
  const auto each_look = [&](auto&& body) {
    for (size_t t = 0; t < batch.tiles.size(); ++t) {
      const AttentionTile& tile = batch.tiles[t];
      const KeySpan& span = batch.spans[static_cast<size_t>(tile.span)];
      for (int32_t i = 0; i < tile.row_count; ++i) {
        const TileRow& entry = batch.tile_rows[static_cast<size_t>(tile.first_row + i)];
        const int32_t first = span.first_seen(batch.positions[static_cast<size_t>(entry.row)], window);
        if (first < entry.visible) body(static_cast<int32_t>(t), entry, first);
      }
    }
  };
  each_look(
      [&](int32_t, const TileRow& entry, int32_t) { ++result.first[static_cast<size_t>(entry.row) + 1]; });
  std::partial_sum(result.first.begin(), result.first.end(), result.first.begin());
  result.looks.resize(static_cast<size_t>(result.first.back()));
  std::vector<int32_t> next(result.first.begin(), result.first.end() - 1);
  each_look([&](int32_t tile, const TileRow& entry, int32_t first) {
    const auto row = static_cast<size_t>(entry.row);
    result.looks[static_cast<size_t>(next[row]++)] = {tile, first, entry.visible, keys[row] - first};
    keys[row] += entry.visible - first;
  });
  return result;
}

std::vector<AttentionPlan::Run> cut_into_runs(const StepBatch& batch, const KeySpan& span,
                                              const KvPool& pool) {
  std::vector<AttentionPlan::Run> runs;
  const int32_t page_size = pool.page_size();
  for (int32_t key = 0; key < span.keys; key += page_size) {
    const int64_t page = batch.pages[static_cast<size_t>(span.first_page + key / page_size)];
    const int32_t in_page = std::min(page_size, span.keys - key);
    for (int32_t offset = 0; offset < in_page;) {
      const int64_t place = pool.place(page, offset);
      const bool joins = !runs.empty() && runs.back().place + runs.back().keys == place &&
                         runs.back().keys % kPanel == 0 && runs.back().keys < AttentionPlan::kLongestRun &&
                         pool.left_in_stretch(place) < pool.left_in_stretch(runs.back().place);
      const int64_t room = std::min<int64_t>(AttentionPlan::kLongestRun - (joins ? runs.back().keys : 0),
                                             pool.left_in_stretch(place));
      const auto taken = static_cast<int32_t>(std::min<int64_t>(in_page - offset, room));
      if (joins)
        runs.back().keys += taken;
      else
        runs.push_back({key + offset, taken, place});
      offset += taken;
    }
  }
  return runs;
}

/// The runs of a span, and where they lie in the plan.
struct SpanRuns {
  int32_t first = -1, count = 0;
};

/// Cuts off the keys before all windows of a part's looks have begun: [looks] are its own, `firsts` where the
/// window of each begins. The cut is at a panel, so that whole panels are left.
void cut_edges(std::span<const AttentionPlan::Look> looks, std::span<const int32_t> firsts,
               AttentionPlan& plan, AttentionPlan::Part& part) {
  const int32_t begun = *std::ranges::max_element(firsts);
  if (begun == 0) return;
  const auto panel = static_cast<int32_t>(kPanel);
  const std::vector<AttentionPlan::Run> runs(plan.runs.begin() + part.first_run,
                                             plan.runs.begin() + part.first_run + part.runs);
  part.first_run = static_cast<int32_t>(plan.runs.size());
  part.runs = 0;
  for (AttentionPlan::Run run : runs) {
    const auto before = std::min(run.keys, static_cast<int32_t>(round_up_to_panel(begun - run.first_key)));
    if (before > 0) {
      for (size_t i = 0; i < looks.size(); ++i)
        for (int32_t key = 0; key < before; key += panel) {
          const int32_t from = std::max(firsts[i] - run.first_key, key);
          const int32_t to = std::min({looks[i].visible - run.first_key, before, key + panel});
          if (from >= to) continue;
          plan.edges.push_back({looks[i].row_in_block, from - key, to - from,
                                looks[i].offset + run.first_key + from, run.place + key});
          ++part.edges;
        }
      run.first_key += before;
      run.keys -= before;
      run.place += before;
    }
    if (run.keys == 0) continue;
    plan.runs.push_back(run);
    ++part.runs;
  }
}

}  // namespace

int32_t looks_that_see(const AttentionPlan& plan, const AttentionPlan::Part& part, int32_t keys) {
  const auto first = plan.looks.begin() + part.first_look;
  const auto end =
      std::partition_point(first, first + part.looks, [&](const auto& look) { return look.visible >= keys; });
  return static_cast<int32_t>(end - first);
}

AttentionPlan plan_attention(const StepBatch& batch, const KvPool& pool, int32_t window, int32_t group,
                             int32_t kv_heads, int threads) {
  AttentionPlan plan;
  const RowLooks by_row = sort_by_row(batch, window, plan.keys);
  plan.rows.resize(batch.tokens.size());
  std::iota(plan.rows.begin(), plan.rows.end(), 0);
  std::stable_sort(plan.rows.begin(), plan.rows.end(), [&](int32_t a, int32_t b) {
    const auto left = by_row.of(a);
    const auto right = by_row.of(b);
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(),
                                        [](const RowLook& x, const RowLook& y) { return x.tile < y.tile; });
  });

  std::vector<SpanRuns> runs_of_span(batch.spans.size());
  const auto find_runs = [&](int32_t span) {
    SpanRuns& place = runs_of_span[static_cast<size_t>(span)];
    if (place.first < 0) {
      const auto runs = cut_into_runs(batch, batch.spans[static_cast<size_t>(span)], pool);
      place = {static_cast<int32_t>(plan.runs.size()), static_cast<int32_t>(runs.size())};
      plan.runs.insert(plan.runs.end(), runs.begin(), runs.end());
    }
    return place;
  };

  // Enough blocks that all threads have work to the end.
  const int64_t rows = batch.rows();
  const auto fair = static_cast<int32_t>(std::max<int64_t>(4, rows * kv_heads / (int64_t{8} * threads)));
  const int32_t most_rows = std::min(kMostRowsPerBlock, fair);
  struct BlockLook {
    int32_t tile, first;
    AttentionPlan::Look look;
  };
  std::vector<BlockLook> block_looks;
  std::vector<int32_t> firsts;  // of the looks of the last part
  const auto close_part = [&] {
    if (firsts.empty()) return;
    cut_edges(std::span(plan.looks).last(firsts.size()), firsts, plan, plan.parts.back());
    firsts.clear();
  };
  for (int32_t first = 0; first < rows;) {
    AttentionPlan::Block block{first, 0, static_cast<int32_t>(plan.parts.size()), 0, 0};
    block_looks.clear();
    while (first + block.rows < rows && block.rows < most_rows) {
      const int32_t row = plan.rows[static_cast<size_t>(first + block.rows)];
      const int32_t most_keys = std::max(block.most_keys, plan.keys[static_cast<size_t>(row)]);
      const int64_t heads = int64_t{group} * (block.rows + 1);
      const int64_t most_scores = heads <= kFewHeads ? kMostScoresPerBlock : kScoresPerBlock;
      if (block.rows > 0 && most_keys * heads > most_scores) break;
      block.most_keys = most_keys;
      for (const RowLook& look : by_row.of(row))
        block_looks.push_back({look.tile, look.first, {block.rows, look.visible, look.offset}});
      ++block.rows;
    }
    std::stable_sort(block_looks.begin(), block_looks.end(), [](const BlockLook& a, const BlockLook& b) {
      return a.tile != b.tile ? a.tile < b.tile : a.look.visible > b.look.visible;
    });
    int32_t tile = -1;
    for (const BlockLook& entry : block_looks) {
      if (entry.tile != tile) {
        close_part();
        tile = entry.tile;
        const auto [first_run, runs] = find_runs(batch.tiles[static_cast<size_t>(tile)].span);
        plan.parts.push_back({first_run, runs, static_cast<int32_t>(plan.looks.size()), 0,
                              static_cast<int32_t>(plan.edges.size()), 0});
        ++block.parts;
      }
      plan.looks.push_back(entry.look);
      firsts.push_back(entry.first);
      ++plan.parts.back().looks;
    }
    close_part();
    plan.blocks.push_back(block);
    first += block.rows;
  }
  plan.first_span = by_row.first;
  plan.document_softmax = batch.document_softmax;
  for (const RowLook& look : by_row.looks) {
    const AttentionTile& tile = batch.tiles[static_cast<size_t>(look.tile)];
    const auto [first_run, runs] = find_runs(tile.span);
    plan.row_spans.push_back({first_run, runs, look.first, look.visible, look.offset, tile.apart});
  }
  return plan;
}

}  // namespace sheaf

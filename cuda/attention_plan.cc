#include "cuda/attention_plan.h"

#include <algorithm>
#include <span>

namespace sheaf::cuda {
namespace {

constexpr int32_t kKeyStep = 64;         // keys a block reads at once; ranges start at multiples of it
constexpr int32_t kShortestRange = 256;  // below this the merge costs more than the split gains
constexpr int32_t kChainQueries = 24;    // fewer queries of a segment are gathered with others instead

/// Where a row stands in the tiles that it looks at.
struct Look {
  int32_t tile;
  int32_t index;  ///< into tile_rows
};

class Planner {
 public:
  Planner(const StepBatch& batch, int32_t group, int32_t blocks_wanted, AttentionPlan& plan)
      : batch_(batch), group_(group), blocks_wanted_(blocks_wanted), plan_(plan) {}

  void run() {
    plan_.ranges.clear();
    plan_.items.clear();
    find_looks();
    chain_segments();
    gather_rest();
    order_items();
    list_partials();
  }

 private:
  size_t rows() const { return static_cast<size_t>(batch_.rows()); }
  std::span<const Look> looks(size_t row) const {
    return std::span(looks_).subspan(static_cast<size_t>(begin_[row]),
                                     static_cast<size_t>(begin_[row + 1] - begin_[row]));
  }
  int32_t first_page(int32_t tile) const {
    return batch_.spans[static_cast<size_t>(batch_.tiles[static_cast<size_t>(tile)].span)].first_page;
  }
  int32_t most_visible(int32_t first, int32_t count) const {
    int32_t keys = 0;
    for (int32_t i = first; i < first + count; ++i)
      keys = std::max(keys, batch_.tile_rows[static_cast<size_t>(i)].visible);
    return keys;
  }

  void find_looks() {
    begin_.assign(rows() + 1, 0);
    for (const TileRow& look : batch_.tile_rows) ++begin_[static_cast<size_t>(look.row) + 1];
    for (size_t row = 0; row < rows(); ++row) begin_[row + 1] += begin_[row];
    looks_.resize(batch_.tile_rows.size());
    std::vector<int32_t> next(begin_.begin(), begin_.end() - 1);
    for (size_t tile = 0; tile < batch_.tiles.size(); ++tile) {
      const AttentionTile& rows_of = batch_.tiles[tile];
      for (int32_t i = rows_of.first_row; i < rows_of.first_row + rows_of.row_count; ++i) {
        const auto row = static_cast<size_t>(batch_.tile_rows[static_cast<size_t>(i)].row);
        looks_[static_cast<size_t>(next[row]++)] = {static_cast<int32_t>(tile), i};
      }
    }
  }

  /// Whether row + 1 stands right after row in the same tiles.
  bool goes_on(size_t row) const {
    const auto a = looks(row), b = looks(row + 1);
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Look& x, const Look& y) {
      return x.tile == y.tile && x.index + 1 == y.index;
    });
  }

  void chain_segments() {
    chained_.assign(rows(), false);
    for (size_t start = 0; start < rows();) {
      size_t end = start + 1;
      while (end < rows() && goes_on(end - 1)) ++end;
      const auto count = static_cast<int32_t>(end - start);
      if (count * group_ >= kChainQueries) {
        const int32_t step = (count * group_ > kSmallBlock ? kLargeBlock : kSmallBlock) / group_;
        for (int32_t first = 0; first < count; first += step)
          add_chain(start + static_cast<size_t>(first), std::min(step, count - first));
        std::fill(chained_.begin() + static_cast<ptrdiff_t>(start),
                  chained_.begin() + static_cast<ptrdiff_t>(end), true);
      }
      start = end;
    }
  }

  void add_chain(size_t row, int32_t count) {
    AttentionItem item{static_cast<int32_t>(plan_.ranges.size()), 0, count, -1};
    for (const Look& look : looks(row)) {
      const int32_t keys = most_visible(look.index, count);
      if (keys == 0) continue;
      plan_.ranges.push_back({look.index, first_page(look.tile), 0, keys});
      ++item.range_count;
    }
    if (item.range_count > 0) plan_.items.push_back(item);
  }

  /// The other rows, tile by tile. Their rows may lie scattered over tile_rows, so runs of neighbours make a
  /// block.
  void gather_rest() {
    const int32_t most_rows = kSmallBlock / group_;
    std::vector<AttentionRange> blocks;
    std::vector<int32_t> counts;
    int64_t key_steps = 0;
    for (const AttentionTile& tile : batch_.tiles) {
      const int32_t end = tile.first_row + tile.row_count;
      for (int32_t i = tile.first_row; i < end;) {
        if (chained_[row_at(i)]) {
          ++i;
          continue;
        }
        int32_t last = i + 1;
        while (last < end && last - i < most_rows && !chained_[row_at(last)]) ++last;
        const int32_t keys = most_visible(i, last - i);
        if (keys > 0) {
          blocks.push_back({i, batch_.spans[static_cast<size_t>(tile.span)].first_page, 0, keys});
          counts.push_back(last - i);
          key_steps += (keys + kKeyStep - 1) / kKeyStep;
        }
        i = last;
      }
    }
    // A range no longer than an even share keeps every multiprocessor busy to the end.
    const int64_t share = std::max<int64_t>(1, key_steps / std::max(1, blocks_wanted_)) * kKeyStep;
    const auto range = static_cast<int32_t>(std::max<int64_t>(kShortestRange, share));
    for (size_t i = 0; i < blocks.size(); ++i) {
      for (int32_t key = 0; key < blocks[i].last_key;) {
        AttentionRange part = blocks[i];
        part.first_key = key;
        if (part.last_key - key > range + range / 2) part.last_key = key + range;
        plan_.items.push_back({static_cast<int32_t>(plan_.ranges.size()), 1, counts[i], 0});
        plan_.ranges.push_back(part);
        key = part.last_key;
      }
    }
  }

  size_t row_at(int32_t index) const {
    return static_cast<size_t>(batch_.tile_rows[static_cast<size_t>(index)].row);
  }

  /// Small blocks before large ones; among them the longest first, so that the last to run are short.
  void order_items() {
    auto keys = [&](const AttentionItem& item) {
      int64_t total = 0;
      for (int32_t i = 0; i < item.range_count; ++i) {
        const AttentionRange& range = plan_.ranges[static_cast<size_t>(item.first_range + i)];
        total += range.last_key - range.first_key;
      }
      return total;
    };
    auto large = [&](const AttentionItem& item) { return item.row_count * group_ > kSmallBlock; };
    std::vector<std::pair<int64_t, AttentionItem>> sorted;
    for (const AttentionItem& item : plan_.items)
      sorted.emplace_back(large(item) ? -keys(item) : -keys(item) - (int64_t{1} << 40), item);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    plan_.small_items = 0;
    for (size_t i = 0; i < sorted.size(); ++i) {
      plan_.items[i] = sorted[i].second;
      plan_.small_items += !large(plan_.items[i]);
    }
  }

  void list_partials() {
    std::vector<int32_t> count(rows() + 1, 0);
    plan_.partial_rows = 0;
    for (AttentionItem& item : plan_.items) {
      if (item.first_partial < 0) continue;
      item.first_partial = plan_.partial_rows;
      plan_.partial_rows += item.row_count;
      const int32_t first = plan_.ranges[static_cast<size_t>(item.first_range)].first_row;
      for (int32_t i = 0; i < item.row_count; ++i) ++count[row_at(first + i)];
    }
    plan_.merged_rows.clear();
    plan_.partial_begin.assign(1, 0);
    std::vector<int32_t> next(rows(), 0);
    for (size_t row = 0; row < rows(); ++row) {
      if (count[row] == 0) continue;
      next[row] = plan_.partial_begin.back();
      plan_.merged_rows.push_back(static_cast<int32_t>(row));
      plan_.partial_begin.push_back(plan_.partial_begin.back() + count[row]);
    }
    plan_.partials.resize(static_cast<size_t>(plan_.partial_rows));
    for (const AttentionItem& item : plan_.items) {
      if (item.first_partial < 0) continue;
      const int32_t first = plan_.ranges[static_cast<size_t>(item.first_range)].first_row;
      for (int32_t i = 0; i < item.row_count; ++i)
        plan_.partials[static_cast<size_t>(next[row_at(first + i)]++)] = item.first_partial + i;
    }
  }

  const StepBatch& batch_;
  int32_t group_, blocks_wanted_;
  AttentionPlan& plan_;
  std::vector<int32_t> begin_;  ///< [rows + 1] into looks_
  std::vector<Look> looks_;
  std::vector<bool> chained_;  ///< rows whose attention is one block's
};

}  // namespace

void plan_attention(const StepBatch& batch, int32_t group, int32_t blocks_wanted, AttentionPlan& plan) {
  Planner(batch, group, blocks_wanted, plan).run();
}

}  // namespace sheaf::cuda

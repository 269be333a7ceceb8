#include "cuda/attention/attention_plan.h"

#include <algorithm>
#include <memory>
#include <span>
#include <unordered_map>

namespace sheaf::cuda {
namespace {

constexpr int32_t kLongestRun = 32768;  // rows of a block's page list are 16-bit
constexpr int32_t kMergeCost = 1200;    // merging one query's partial result, in keys attended
constexpr int32_t kPackedKeys = 1024;   // own keys of different rows that a block takes in any case
constexpr int32_t kLargePays = 768;     // keys from which a large block is faster than two small ones
constexpr int32_t kFixedPiece = 2048;  // keys of a row's partial result where cuts may not depend on the load
constexpr int32_t kShortestPiece = 512;  // keys; below this the merge costs more than the cut gains

/// A row looks at a tile's span and sees so many of its keys.
struct Look {
  int32_t tile;
  int32_t visible;
  bool operator==(const Look&) const = default;
};

/// Consecutive rows of one segment.
struct Run {
  int32_t row;
  int32_t count;
  Look own;  ///< of the first row; each further row sees one key more
};

/// Rows that see the same keys of tiles that are apart.
struct Readers {
  std::vector<Look> looks;
  std::vector<int32_t> rows;
};

/// Runs whose rows see the same keys before their own.
struct Trunk {
  std::vector<Look> looks;
  std::vector<Run> runs;
  int64_t rows = 0;
};

int64_t padded(int64_t queries) {
  return (queries + kSmallBlock - 1) / kSmallBlock * kSmallBlock;
}

struct LooksHash {
  size_t operator()(const std::vector<Look>& looks) const {
    uint64_t hash = looks.size();
    for (const Look& look : looks)
      hash = (hash ^ static_cast<uint64_t>(look.tile) ^ (static_cast<uint64_t>(look.visible) << 32)) *
             0x9e3779b97f4a7c15u;
    return static_cast<size_t>(hash ^ (hash >> 29));
  }
};

class Planner {
 public:
  explicit Planner(AttentionShape shape) : shape_(shape) {}

  void run(const StepBatch& batch, int32_t window, AttentionPlan& plan) {
    batch_ = &batch;
    plan_ = &plan;
    plan.window = window;
    plan.rows.clear();
    plan.pages.clear();
    plan.page_positions.clear();
    plan.items.clear();
    plan.document_items.clear();
    trunks_.clear();
    partial_.assign(rows(), false);
    lifted_.clear();
    if (std::ranges::any_of(batch.tiles, &AttentionTile::apart)) {
      find_looks(true);
      add_documents();
    }
    find_looks(false);
    find_runs();
    if (!shape_.fixed) lift_shared_spans();
    for (const Trunk& trunk : trunks_) add_blocks(trunk);
    if (window > 0) leave_out_pages();
    if (!shape_.fixed) cut_long_items();
    list_partials();
    plan.small_items = order_items(plan.items);
    plan.small_document_items = order_items(plan.document_items);
  }

 private:
  size_t rows() const { return static_cast<size_t>(batch_->rows()); }
  std::span<const Look> looks(size_t row) const {
    return std::span(looks_).subspan(static_cast<size_t>(begin_[row]),
                                     static_cast<size_t>(begin_[row + 1] - begin_[row]));
  }
  int32_t listed_pages() const { return static_cast<int32_t>(plan_->pages.size()); }
  int32_t pages_for(int32_t keys) const { return (keys + shape_.page_size - 1) / shape_.page_size; }
  int32_t most_rows(int32_t queries) const { return std::max(1, queries / shape_.group); }

  /// Small blocks hide each other's starts and ends; large ones read keys for twice as many queries.
  static int32_t block_for(int32_t keys) { return keys < kLargePays ? kSmallBlock : kLargeBlock; }
  static int32_t trunk_keys(const Trunk& trunk) {
    int32_t keys = 0;
    for (const Look& look : trunk.looks) keys += look.visible;
    return keys;
  }

  /// What rows see of tiles that are apart, or of the others.
  void find_looks(bool apart) {
    const auto each_look = [&](auto&& body) {
      for (size_t tile = 0; tile < batch_->tiles.size(); ++tile) {
        const AttentionTile& seen = batch_->tiles[tile];
        if (seen.apart != apart) continue;
        for (int32_t i = seen.first_row; i < seen.first_row + seen.row_count; ++i) {
          const TileRow& look = batch_->tile_rows[static_cast<size_t>(i)];
          if (look.visible > 0) body(static_cast<int32_t>(tile), look);
        }
      }
    };
    begin_.assign(rows() + 1, 0);
    each_look([&](int32_t, const TileRow& look) { ++begin_[static_cast<size_t>(look.row) + 1]; });
    for (size_t row = 0; row < rows(); ++row) begin_[row + 1] += begin_[row];
    looks_.resize(static_cast<size_t>(begin_[rows()]));
    next_.assign(begin_.begin(), begin_.end() - 1);
    each_look([&](int32_t tile, const TileRow& look) {
      looks_[static_cast<size_t>(next_[static_cast<size_t>(look.row)]++)] = {tile, look.visible};
    });
  }

  /// Blocks of the rows that see the same keys apart: their results are merged with those of all other keys.
  void add_documents() {
    readers_.clear();
    by_looks_.clear();
    size_t last = 0;
    for (size_t row = 0; row < rows(); ++row) {
      const auto seen = looks(row);
      if (seen.empty()) continue;
      partial_[row] = true;
      if (readers_.empty() || !std::ranges::equal(seen, readers_[last].looks)) {
        const auto [found, added] =
            by_looks_.try_emplace(std::vector<Look>(seen.begin(), seen.end()), readers_.size());
        if (added) readers_.push_back({found->first, {}});
        last = found->second;
      }
      readers_[last].rows.push_back(static_cast<int32_t>(row));
    }
    for (const Readers& readers : readers_) {
      const int32_t first_page = listed_pages();
      for (const Look& look : readers.looks) add_pages(look, kWholePage, 0, kAllRows);
      add_whole_blocks(readers.rows, first_page, plan_->document_items);
    }
  }

  /// Whether row + 1 follows row in the same segment.
  bool goes_on(size_t row) const {
    const auto a = looks(row), b = looks(row + 1);
    return partial_[row] == partial_[row + 1] && a.size() == b.size() &&
           std::equal(a.begin(), a.end() - 1, b.begin()) && a.back().tile == b.back().tile &&
           a.back().visible + 1 == b.back().visible;
  }

  void find_runs() {
    by_looks_.clear();
    for (size_t start = 0; start < rows();) {
      size_t end = start + 1;
      if (looks(start).empty()) {  // sees nothing: nothing to add up
        start = end;
        continue;
      }
      while (end < rows() && end - start < kLongestRun && end != static_cast<size_t>(batch_->decode_tokens) &&
             !looks(end).empty() && goes_on(end - 1))
        ++end;
      const auto seen = looks(start);
      add_run({seen.begin(), seen.end() - 1},
              {static_cast<int32_t>(start), static_cast<int32_t>(end - start), seen.back()});
      start = end;
    }
  }

  void add_run(std::vector<Look> trunk, const Run& run) {
    const auto [found, added] = by_looks_.try_emplace(trunk, trunks_.size());
    if (added) trunks_.push_back({std::move(trunk), {}, 0});
    trunks_[found->second].runs.push_back(run);
    trunks_[found->second].rows += run.count;
  }

  /// The spans that too few rows of a trunk see for a full block, and that other trunks' rows see too.
  void lift_shared_spans() {
    rows_of_tile_.assign(batch_->tiles.size(), 0);
    for (const Trunk& trunk : trunks_)
      for (const Look& look : trunk.looks) rows_of_tile_[static_cast<size_t>(look.tile)] += trunk.rows;
    auto pays = [&](const Trunk& trunk, const Look& look) {
      const int64_t all = rows_of_tile_[static_cast<size_t>(look.tile)];
      if (all == trunk.rows) return false;
      const auto waste = [&](int64_t count) {
        const int64_t queries = count * shape_.group;
        return static_cast<double>(padded(queries)) / static_cast<double>(queries);
      };
      return look.visible * (waste(trunk.rows) - waste(all)) > kMergeCost;
    };
    std::vector<Trunk> before;
    before.swap(trunks_);
    by_looks_.clear();
    for (const Trunk& trunk : before) {
      std::vector<Look> kept;
      for (const Look& look : trunk.looks) {
        if (!pays(trunk, look)) {
          kept.push_back(look);
          continue;
        }
        for (const Run& run : trunk.runs) lift(look, run);
      }
      for (const Run& run : trunk.runs) add_run(kept, run);
    }
    add_lifted();
  }

  void lift(const Look& look, const Run& run) {
    for (int32_t row = run.row; row < run.row + run.count; ++row) {
      lifted_.emplace_back(look, row);
      partial_[static_cast<size_t>(row)] = true;
    }
  }

  /// Blocks of the rows that look at a lifted span.
  void add_lifted() {
    std::stable_sort(lifted_.begin(), lifted_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.tile, a.first.visible) < std::pair(b.first.tile, b.first.visible);
    });
    for (size_t i = 0; i < lifted_.size();) {
      const Look look = lifted_[i].first;
      size_t end = i;
      while (end < lifted_.size() && lifted_[end].first == look) ++end;
      const int32_t first_page = listed_pages();
      add_pages(look, kWholePage, 0, kAllRows);
      std::vector<int32_t> of_rows;
      for (; i < end; ++i) of_rows.push_back(lifted_[i].second);
      add_whole_blocks(of_rows, first_page, plan_->items);
    }
  }

  /// Partial blocks of rows that all see the plan's pages from `first_page` on.
  void add_whole_blocks(std::span<const int32_t> of_rows, int32_t first_page,
                        std::vector<AttentionItem>& items) {
    const bool large = of_rows.size() > static_cast<size_t>(most_rows(kSmallBlock));
    const auto block = static_cast<size_t>(most_rows(large ? kLargeBlock : kSmallBlock));
    const int32_t end = listed_pages();
    for (size_t at = 0; at < of_rows.size(); at += block) {
      const auto some = of_rows.subspan(at, std::min(block, of_rows.size() - at));
      const auto first_row = static_cast<int32_t>(plan_->rows.size());
      plan_->rows.insert(plan_->rows.end(), some.begin(), some.end());
      for (int32_t page = first_page; page < end;) {
        const int32_t taken = std::min(piece(), end - page);
        items.push_back({first_row, static_cast<int32_t>(some.size()), 0, page, taken, 0});
        page += taken;
      }
    }
  }

  /// Pages of a row that make up one partial result. With `fixed` they are cut by their number among the
  /// row's own pages, whatever else the block goes over.
  int32_t piece() const { return shape_.fixed ? kFixedPiece / shape_.page_size : INT32_MAX; }

  /// The pages of a span as far as `look` sees; row r in [first, last) sees base + r keys of them.
  void add_pages(const Look& look, int32_t base, int32_t first, int32_t last) {
    const KeySpan& span =
        batch_->spans[static_cast<size_t>(batch_->tiles[static_cast<size_t>(look.tile)].span)];
    const int32_t* page = batch_->pages.data() + span.first_page;
    for (int32_t key = 0; key < look.visible; key += shape_.page_size) {
      plan_->pages.push_back({*page++ * shape_.page_size, std::min(shape_.page_size, look.visible - key),
                              base - key, static_cast<uint16_t>(first), static_cast<uint16_t>(last)});
      plan_->page_positions.push_back(span.position + key);
    }
  }

  /// The earliest position among the rows of an item that a page is for; INT32_MAX where there is none.
  int32_t earliest_row(const AttentionItem& item, int32_t first, int32_t last) const {
    int32_t earliest = INT32_MAX;
    for (int32_t i = std::max(first - item.row_offset, 0);
         i < std::min(last - item.row_offset, item.row_count); ++i) {
      const int32_t row = plan_->rows[static_cast<size_t>(item.first_row + i)];
      earliest = std::min(earliest, batch_->positions[static_cast<size_t>(row)]);
    }
    return earliest;
  }

  /// Pages whose keys lie before the windows of all rows of their item, and items that are left without any.
  void leave_out_pages() {
    std::vector<AttentionPage> pages;
    std::vector<int32_t> positions;
    for (std::vector<AttentionItem>* items : {&plan_->items, &plan_->document_items})
      leave_out_pages(*items, pages, positions);
    plan_->pages = std::move(pages);
    plan_->page_positions = std::move(positions);
  }

  void leave_out_pages(std::vector<AttentionItem>& from, std::vector<AttentionPage>& pages,
                       std::vector<int32_t>& positions) const {
    std::vector<AttentionItem> items;
    for (AttentionItem item : from) {
      const auto first_page = static_cast<int32_t>(pages.size());
      const int32_t of_all = earliest_row(item, 0, kAllRows);
      for (int32_t p = item.first_page; p < item.first_page + item.page_count; ++p) {
        const AttentionPage& page = plan_->pages[static_cast<size_t>(p)];
        const int32_t position = plan_->page_positions[static_cast<size_t>(p)];
        const bool all = page.first_row == 0 && page.last_row == kAllRows;
        const int32_t earliest = all ? of_all : earliest_row(item, page.first_row, page.last_row);
        if (earliest == INT32_MAX || position + page.keys <= earliest - plan_->window + 1) continue;
        pages.push_back(page);
        positions.push_back(position);
      }
      item.first_page = first_page;
      item.page_count = static_cast<int32_t>(pages.size()) - first_page;
      if (item.page_count > 0) items.push_back(item);
    }
    from = std::move(items);
  }

  void add_blocks(const Trunk& trunk) {
    const int32_t shared_keys = trunk_keys(trunk);
    const int32_t large = most_rows(kLargeBlock), small = most_rows(kSmallBlock);

    waiting_.clear();
    int64_t waiting_rows = 0, waiting_keys = 0;
    for (const Run& run : trunk.runs) {
      if (run.count > small) {
        add_long_run(trunk, run);
      } else {
        waiting_.push_back(run);
        waiting_rows += run.count;
        waiting_keys += run.own.visible + run.count;
      }
    }
    // What rows do not share costs a large block twice as much, but it runs faster: it pays until the rows'
    // own keys outgrow the trunk.
    const bool share = block_for(shared_keys) == kLargeBlock && waiting_rows > small &&
                       waiting_keys * large / waiting_rows <= shared_keys + shared_keys / 2;
    const int32_t block = share ? large : small;
    const int32_t most_keys = std::max(kPackedKeys, 2 * shared_keys);
    block_.clear();
    int32_t block_rows = 0, block_keys = 0;
    for (Run run : waiting_) {
      while (run.count > 0) {
        const int32_t keys = run.own.visible + run.count - 1;
        if (block_rows == block || (block_rows > 0 && block_keys + keys > most_keys)) {
          add_packed(trunk);
          block_rows = block_keys = 0;
        }
        Run part = run;
        part.count = std::min(run.count, block - block_rows);
        block_.push_back(part);
        block_rows += part.count;
        block_keys += keys;
        run.row += part.count;
        run.own.visible += part.count;
        run.count -= part.count;
      }
    }
    if (block_rows > 0) add_packed(trunk);
  }

  /// Blocks of one run share a list of pages: each goes as far as its last row sees.
  void add_long_run(const Trunk& trunk, const Run& run) {
    const auto first_page = static_cast<int32_t>(plan_->pages.size());
    for (const Look& look : trunk.looks) add_pages(look, kWholePage, 0, kAllRows);
    const auto trunk_pages = static_cast<int32_t>(plan_->pages.size()) - first_page;
    add_pages({run.own.tile, run.own.visible + run.count - 1}, run.own.visible, 0, kAllRows);
    const int32_t block = most_rows(block_for(trunk_keys(trunk) + run.own.visible + run.count / 2));
    for (int32_t at = 0; at < run.count; at += block) {
      const int32_t count = std::min(block, run.count - at);
      add_item(first_page, trunk_pages + pages_for(run.own.visible + at + count - 1), at, run.row + at,
               count);
    }
  }

  /// The runs of block_, each with its own pages after the trunk's.
  void add_packed(const Trunk& trunk) {
    const auto first_page = static_cast<int32_t>(plan_->pages.size());
    const auto count_pages = [&] { return static_cast<int32_t>(plan_->pages.size()) - first_page; };
    for (const Look& look : trunk.looks) add_pages(look, kWholePage, 0, kAllRows);
    own_ends_.assign(1, count_pages());
    int32_t rows = 0, longest = 0;
    const auto first_row = static_cast<int32_t>(plan_->rows.size());
    bool partial = false;
    for (const Run& run : block_) {
      add_pages({run.own.tile, run.own.visible + run.count - 1}, run.own.visible - rows, rows,
                rows + run.count);
      for (int32_t row = run.row; row < run.row + run.count; ++row) plan_->rows.push_back(row);
      rows += run.count;
      partial = partial || partial_[static_cast<size_t>(run.row)];
      longest = std::max(longest, own_ends_[0] + count_pages() - own_ends_.back());
      own_ends_.push_back(count_pages());
    }
    block_.clear();
    if (longest <= piece())
      plan_->items.push_back({first_row, rows, 0, first_page, count_pages(), partial ? 0 : -1});
    else
      cut_packed(first_row, rows, first_page, longest);
  }

  /// A packed block in pieces: of the trunk and of every run the pages that are the row's i-th to j-th.
  void cut_packed(int32_t first_row, int32_t rows, int32_t first_page, int32_t longest) {
    const std::vector<AttentionPage> list(plan_->pages.begin() + first_page, plan_->pages.end());
    const std::vector<int32_t> positions(plan_->page_positions.begin() + first_page,
                                         plan_->page_positions.end());
    plan_->pages.resize(static_cast<size_t>(first_page));
    plan_->page_positions.resize(static_cast<size_t>(first_page));
    const int32_t trunk = own_ends_[0];
    for (int32_t from = 0; from < longest; from += piece()) {
      const int32_t to = from + piece();
      const auto begin = static_cast<int32_t>(plan_->pages.size());
      const auto take = [&](int32_t first, int32_t last) {
        if (first >= last) return;
        plan_->pages.insert(plan_->pages.end(), list.begin() + first, list.begin() + last);
        plan_->page_positions.insert(plan_->page_positions.end(), positions.begin() + first,
                                     positions.begin() + last);
      };
      take(from, std::min(to, trunk));
      for (size_t run = 1; run < own_ends_.size(); ++run)
        take(own_ends_[run - 1] + std::max(from - trunk, 0),
             std::min(own_ends_[run - 1] + to - trunk, own_ends_[run]));
      plan_->items.push_back(
          {first_row, rows, 0, begin, static_cast<int32_t>(plan_->pages.size()) - begin, 0});
    }
  }

  void add_item(int32_t first_page, int32_t page_count, int32_t offset, int32_t row, int32_t count) {
    const auto first_row = static_cast<int32_t>(plan_->rows.size());
    for (int32_t i = 0; i < count; ++i) plan_->rows.push_back(row + i);
    const bool whole = page_count <= piece() && !partial_[static_cast<size_t>(row)];
    for (int32_t page = 0; page < page_count;) {
      const int32_t taken = std::min(piece(), page_count - page);
      plan_->items.push_back({first_row, count, offset, first_page + page, taken, whole ? -1 : 0});
      page += taken;
    }
  }

  /// Pieces no longer than an even share keep every multiprocessor busy to the end.
  void cut_long_items() {
    int64_t total = 0;
    for (const auto* items : {&plan_->items, &plan_->document_items})
      for (const AttentionItem& item : *items) total += item.page_count;
    const int64_t share = total / std::max(1, shape_.wanted);
    const int64_t step = std::max(1, 128 / shape_.page_size);
    const auto piece = static_cast<int32_t>(
        std::max<int64_t>(kShortestPiece / shape_.page_size, (share + step - 1) / step * step));
    for (std::vector<AttentionItem>* items : {&plan_->items, &plan_->document_items})
      cut_items(*items, piece, step);
  }

  /// Where it pays, into pieces of about `piece` pages, each a multiple of `step`.
  static void cut_items(std::vector<AttentionItem>& items, int32_t piece, int64_t step) {
    const size_t count = items.size();
    for (size_t i = 0; i < count; ++i) {
      if (items[i].page_count <= piece + piece / 2) continue;
      AttentionItem rest = items[i];
      rest.first_partial = 0;
      const int32_t pieces = (rest.page_count + piece - 1) / piece;
      const auto even =
          static_cast<int32_t>(((rest.page_count + pieces - 1) / pieces + step - 1) / step * step);
      bool first = true;
      while (rest.page_count > 0) {
        AttentionItem part = rest;
        part.page_count = std::min(even, rest.page_count);
        rest.first_page += part.page_count;
        rest.page_count -= part.page_count;
        if (first)
          items[i] = part;
        else
          items.push_back(part);
        first = false;
      }
    }
  }

  /// Small blocks before large ones; among them the longest first, so that the last to run are short. Returns
  /// how many are small.
  int32_t order_items(std::vector<AttentionItem>& items) const {
    auto rank = [&](const AttentionItem& item) {
      return std::pair(item.row_count * shape_.group > kSmallBlock, -item.page_count);
    };
    std::stable_sort(items.begin(), items.end(),
                     [&](const AttentionItem& a, const AttentionItem& b) { return rank(a) < rank(b); });
    return static_cast<int32_t>(
        std::partition_point(items.begin(), items.end(),
                             [&](const AttentionItem& item) { return !rank(item).first; }) -
        items.begin());
  }

  /// A row's partial results are merged in the order of its pieces.
  void list_partials() {
    std::vector<int32_t>& count = next_;
    count.assign(rows(), 0);
    plan_->partial_rows = 0;
    auto for_rows = [&](const AttentionItem& item, auto&& body) {
      for (int32_t i = 0; i < item.row_count; ++i)
        body(static_cast<size_t>(plan_->rows[static_cast<size_t>(item.first_row + i)]), i);
    };
    for (std::vector<AttentionItem>* items : {&plan_->items, &plan_->document_items}) {
      plan_->first_document_partial = plan_->partial_rows;
      for (AttentionItem& item : *items) {
        if (item.first_partial < 0) continue;
        item.first_partial = plan_->partial_rows;
        plan_->partial_rows += item.row_count;
        for_rows(item, [&](size_t row, int32_t) { ++count[row]; });
      }
    }
    plan_->merged_rows.clear();
    plan_->partial_begin.assign(1, 0);
    for (size_t row = 0; row < rows(); ++row) {
      if (count[row] == 0) continue;
      plan_->merged_rows.push_back(static_cast<int32_t>(row));
      plan_->partial_begin.push_back(plan_->partial_begin.back() + count[row]);
      count[row] = plan_->partial_begin[plan_->partial_begin.size() - 2];
    }
    plan_->partials.resize(static_cast<size_t>(plan_->partial_rows));
    for (const auto* items : {&plan_->items, &plan_->document_items})
      for (const AttentionItem& item : *items) {
        if (item.first_partial < 0) continue;
        for_rows(item, [&](size_t row, int32_t i) {
          plan_->partials[static_cast<size_t>(count[row]++)] = item.first_partial + i;
        });
      }
  }

  AttentionShape shape_;
  const StepBatch* batch_ = nullptr;
  AttentionPlan* plan_ = nullptr;
  std::vector<int32_t> begin_, next_;  ///< [rows + 1] into looks_; [rows]
  std::vector<Look> looks_;            ///< of all rows, in the order of their keys
  std::vector<Trunk> trunks_;
  std::unordered_map<std::vector<Look>, size_t, LooksHash> by_looks_;
  std::vector<int64_t> rows_of_tile_;
  std::vector<bool> partial_;  ///< rows with a lifted span, or with keys that are apart
  std::vector<Readers> readers_;
  std::vector<Run> waiting_, block_;
  std::vector<int32_t> own_ends_;  ///< of a packed block: where the pages of the trunk and of each run end
  std::vector<std::pair<Look, int32_t>> lifted_;  ///< and the row that looks
};

}  // namespace

AttentionPlanner make_attention_planner(AttentionShape shape) {
  return
      [planner = std::make_shared<Planner>(shape)](
          const StepBatch& batch, int32_t window, AttentionPlan& plan) { planner->run(batch, window, plan); };
}

}  // namespace sheaf::cuda

// What the blocks of a plan let each row see must be what the step says, every key once and in order.
#include "cuda/attention/attention_plan.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <span>

#include "tests/cuda/random_looks.h"

namespace sheaf {
namespace {

using cuda::AttentionItem;
using cuda::AttentionPage;
using cuda::AttentionPlan;
using cuda::AttentionPlanner;
using cuda::make_attention_planner;

enum class Of { all, documents, others };

std::vector<std::vector<int32_t>> slots_seen(const StepBatch& batch, int32_t page_size, int32_t window = 0,
                                             Of of = Of::all) {
  std::vector<std::vector<int32_t>> seen(static_cast<size_t>(batch.rows()));
  for (const AttentionTile& tile : batch.tiles) {
    if (tile.apart ? of == Of::others : of == Of::documents) continue;
    const int32_t* pages = batch.pages.data() + batch.spans[static_cast<size_t>(tile.span)].first_page;
    for (int32_t i = tile.first_row; i < tile.first_row + tile.row_count; ++i) {
      const TileRow& look = batch.tile_rows[static_cast<size_t>(i)];
      const int32_t first = batch.spans[static_cast<size_t>(tile.span)].first_seen(
          window > 0 ? batch.positions[static_cast<size_t>(look.row)] : 0, window);
      for (int32_t key = first; key < look.visible; ++key)
        seen[static_cast<size_t>(look.row)].push_back(pages[key / page_size] * page_size + key % page_size);
    }
  }
  for (auto& slots : seen) std::sort(slots.begin(), slots.end());
  return seen;
}

/// The same, from the plan alone; with a window, `positions` [rows] are those of the rows.
std::vector<std::vector<int32_t>> slots_planned(const AttentionPlan& plan, size_t rows,
                                                std::span<const int32_t> positions = {}, Of of = Of::all) {
  std::vector<std::vector<int32_t>> seen(rows);
  const auto hidden = [&](size_t row, size_t page, int32_t key) {
    return plan.window > 0 && plan.page_positions[page] + key <= positions[row] - plan.window;
  };
  std::vector<AttentionItem> items;
  if (of != Of::documents) items = plan.items;
  if (of != Of::others) items.insert(items.end(), plan.document_items.begin(), plan.document_items.end());
  for (const AttentionItem& item : items) {
    for (int32_t i = 0; i < item.row_count; ++i) {
      const auto row = static_cast<size_t>(plan.rows[static_cast<size_t>(item.first_row + i)]);
      const int32_t number = item.row_offset + i;
      for (int32_t p = item.first_page; p < item.first_page + item.page_count; ++p) {
        const AttentionPage& page = plan.pages[static_cast<size_t>(p)];
        if (number < page.first_row || number >= page.last_row) continue;
        for (int32_t key = 0; key < std::min(page.keys, page.base + number); ++key)
          if (!hidden(row, static_cast<size_t>(p), key)) seen[row].push_back(page.slot + key);
      }
    }
  }
  for (auto& slots : seen) std::sort(slots.begin(), slots.end());
  return seen;
}

void check_partials(const AttentionPlan& plan) {
  std::map<int32_t, std::vector<int32_t>> partials;
  std::map<int32_t, int32_t> blocks;
  for (const auto* items : {&plan.items, &plan.document_items})
    for (const AttentionItem& item : *items)
      for (int32_t i = 0; i < item.row_count; ++i) {
        const int32_t row = plan.rows[static_cast<size_t>(item.first_row + i)];
        ++blocks[row];
        if (item.first_partial >= 0) partials[row].push_back(item.first_partial + i);
        // How a merge tells them apart.
        const bool documents = item.first_partial >= plan.first_document_partial;
        EXPECT_EQ(documents && item.first_partial >= 0, items == &plan.document_items);
      }
  ASSERT_EQ(plan.partial_begin.size(), plan.merged_rows.size() + 1);
  ASSERT_EQ(partials.size(), plan.merged_rows.size());
  for (size_t i = 0; i < plan.merged_rows.size(); ++i) {
    std::vector<int32_t> listed(plan.partials.begin() + plan.partial_begin[i],
                                plan.partials.begin() + plan.partial_begin[i + 1]);
    auto& found = partials[plan.merged_rows[i]];
    std::sort(listed.begin(), listed.end());
    std::sort(found.begin(), found.end());
    EXPECT_EQ(listed, found);
  }
  for (const auto& [row, count] : blocks) {
    const auto found = partials.find(row);
    EXPECT_EQ(count, found == partials.end() ? 1 : static_cast<int32_t>(found->second.size()))
        << "row " << row << " has a whole result and others";
  }
}

TEST(AttentionPlan, ShowsEveryRowItsKeysOnce) {
  std::mt19937 random(3);
  AttentionPlan plan;
  int64_t merged = 0, whole = 0, large = 0;
  for (int round = 0; round < 60; ++round) {
    test::LooksShape shape;
    shape.page_size = std::array{8, 16, 32, 64}[static_cast<size_t>(round % 4)];
    shape.longest = round % 5 == 0 ? 3000 : 200;
    shape.longest_run = round % 3 == 0 ? 500 : 30;
    shape.children = round % 7 == 0 ? 40 : 5;
    const test::RandomLooks looks = make_random_looks(random, shape);
    const int32_t group = std::array{1, 2, 3, 4, 8, 16}[static_cast<size_t>(round % 6)];
    const AttentionPlanner planner =
        make_attention_planner({group, shape.page_size, round % 2 == 0 ? 4 : 500});
    planner(looks.batch, 0, plan);
    EXPECT_EQ(slots_planned(plan, static_cast<size_t>(looks.batch.rows())),
              slots_seen(looks.batch, shape.page_size));
    check_partials(plan);
    for (size_t i = 0; i < plan.items.size(); ++i) {
      const int32_t queries = plan.items[i].row_count * group;
      EXPECT_LE(queries, cuda::kLargeBlock);
      EXPECT_EQ(queries <= cuda::kSmallBlock, i < static_cast<size_t>(plan.small_items));
      EXPECT_GT(plan.items[i].page_count, 0);
    }
    merged += static_cast<int64_t>(plan.merged_rows.size());
    whole += looks.batch.rows() - static_cast<int64_t>(plan.merged_rows.size());
    large += static_cast<int64_t>(plan.items.size()) - plan.small_items;
  }
  EXPECT_GT(merged, 100);
  EXPECT_GT(whole, 1000);
  EXPECT_GT(large, 100);
}

TEST(AttentionPlan, ShowsEveryRowTheKeysOfItsWindowOnce) {
  std::mt19937 random(4);
  AttentionPlan plan, whole;
  int64_t left_out = 0;
  for (int round = 0; round < 60; ++round) {
    test::LooksShape shape;
    shape.page_size = std::array{8, 16, 32, 64}[static_cast<size_t>(round % 4)];
    shape.longest = round % 5 == 0 ? 3000 : 200;
    shape.longest_run = round % 3 == 0 ? 500 : 30;
    const test::RandomLooks looks = make_random_looks(random, shape);
    const int32_t group = std::array{1, 2, 3, 4, 8, 16}[static_cast<size_t>(round % 6)];
    const int32_t window = std::array{1, 7, 64, 300, 100'000}[static_cast<size_t>(round % 5)];
    const AttentionPlanner planner =
        make_attention_planner({group, shape.page_size, round % 2 == 0 ? 4 : 500, round % 7 == 0});
    planner(looks.batch, window, plan);
    EXPECT_EQ(slots_planned(plan, static_cast<size_t>(looks.batch.rows()), looks.batch.positions),
              slots_seen(looks.batch, shape.page_size, window));
    check_partials(plan);
    ASSERT_EQ(plan.pages.size(), plan.page_positions.size());
    for (const AttentionItem& item : plan.items) EXPECT_GT(item.page_count, 0);
    planner(looks.batch, 0, whole);
    const auto pages_of = [](const AttentionPlan& of) {
      int64_t pages = 0;
      for (const AttentionItem& item : of.items) pages += item.page_count;
      return pages;
    };
    EXPECT_LE(pages_of(plan), pages_of(whole));
    left_out += pages_of(whole) - pages_of(plan);
  }
  EXPECT_GT(left_out, 1000);
}

TEST(AttentionPlan, KeepsKeysThatAreWeighedApartInBlocksOfTheirOwn) {
  std::mt19937 random(5);
  AttentionPlan plan;
  int64_t documents = 0, large = 0;
  for (int round = 0; round < 60; ++round) {
    test::LooksShape shape;
    shape.page_size = std::array{8, 16, 32, 64}[static_cast<size_t>(round % 4)];
    shape.longest = round % 5 == 0 ? 3000 : 200;
    shape.longest_run = round % 3 == 0 ? 500 : 30;
    test::RandomLooks looks = make_random_looks(random, shape);
    test::weigh_apart(random, {0.5f, 0.8f}, looks.batch);
    const int32_t group = std::array{1, 2, 3, 4, 8, 16}[static_cast<size_t>(round % 6)];
    const int32_t window = std::array{0, 7, 0, 300, 100'000}[static_cast<size_t>(round % 5)];
    const AttentionPlanner planner =
        make_attention_planner({group, shape.page_size, round % 2 == 0 ? 4 : 500, round % 7 == 0});
    planner(looks.batch, window, plan);
    const auto rows = static_cast<size_t>(looks.batch.rows());
    for (const Of of : {Of::documents, Of::others})
      EXPECT_EQ(slots_planned(plan, rows, looks.batch.positions, of),
                slots_seen(looks.batch, shape.page_size, window, of));
    check_partials(plan);
    for (size_t i = 0; i < plan.document_items.size(); ++i) {
      const int32_t queries = plan.document_items[i].row_count * group;
      EXPECT_LE(queries, cuda::kLargeBlock);
      EXPECT_EQ(queries <= cuda::kSmallBlock, i < static_cast<size_t>(plan.small_document_items));
      EXPECT_GT(plan.document_items[i].page_count, 0);
    }
    documents += static_cast<int64_t>(plan.document_items.size());
    large += static_cast<int64_t>(plan.document_items.size()) - plan.small_document_items;
  }
  EXPECT_GT(documents, 1000);
  EXPECT_GT(large, 20);
}

/// `count` rows, each with its own span of `own` keys, behind one span of `shared` keys.
StepBatch fan(int32_t count, int32_t shared, int32_t own, int32_t page_size) {
  StepBatch batch;
  auto add_span = [&](int32_t keys) {
    batch.spans.push_back({static_cast<int32_t>(batch.pages.size()), keys});
    for (int32_t key = 0; key < keys; key += page_size)
      batch.pages.push_back(static_cast<int32_t>(batch.pages.size()));
  };
  add_span(shared);
  batch.tiles.push_back({0, 0, count});
  for (int32_t row = 0; row < count; ++row) {
    batch.tokens.push_back(0);
    batch.tile_rows.push_back({row, shared});
  }
  for (int32_t row = 0; row < count; ++row) {
    add_span(own);
    batch.tiles.push_back({row + 1, static_cast<int32_t>(batch.tile_rows.size()), 1});
    batch.tile_rows.push_back({row, own});
  }
  return batch;
}

int64_t pages_read(const AttentionPlan& plan) {
  int64_t pages = 0;
  for (const AttentionItem& item : plan.items) pages += item.page_count;
  return pages;
}

TEST(AttentionPlan, ReadsASharedSpanOncePerFullBlock) {
  const AttentionPlanner planner = make_attention_planner({4, 16, 1});
  AttentionPlan plan;
  planner(fan(256, 4096, 16, 16), 0, plan);
  // 256 rows of 4 heads are 8 blocks of 128 queries: 8 times the span, and every row's own page.
  EXPECT_EQ(pages_read(plan), 8 * 256 + 256);
  EXPECT_EQ(plan.partial_rows, 0);
}

TEST(AttentionPlan, LiftsASpanWhoseReadersAreScattered) {
  // 64 pairs of rows, each pair behind a middle span of its own, all behind one long span.
  StepBatch batch;
  auto add_span = [&](int32_t keys) {
    batch.spans.push_back({static_cast<int32_t>(batch.pages.size()), keys});
    for (int32_t key = 0; key < keys; key += 16)
      batch.pages.push_back(static_cast<int32_t>(batch.pages.size()));
    return static_cast<int32_t>(batch.spans.size()) - 1;
  };
  auto look = [&](int32_t span, std::vector<int32_t> rows, int32_t keys) {
    batch.tiles.push_back(
        {span, static_cast<int32_t>(batch.tile_rows.size()), static_cast<int32_t>(rows.size())});
    for (int32_t row : rows) batch.tile_rows.push_back({row, keys});
  };
  batch.tokens.assign(128, 0);
  std::vector<int32_t> all;
  for (int32_t row = 0; row < 128; ++row) all.push_back(row);
  look(add_span(8192), all, 8192);
  for (int32_t pair = 0; pair < 64; ++pair) {
    look(add_span(32), {2 * pair, 2 * pair + 1}, 32);
    look(add_span(16), {2 * pair}, 16);
    look(add_span(16), {2 * pair + 1}, 16);
  }
  const AttentionPlanner planner = make_attention_planner({4, 16, 1});
  AttentionPlan plan;
  planner(batch, 0, plan);
  EXPECT_LT(pages_read(plan), 4 * 512 + 64 * (2 + 2) + 1) << "the long span is read by four full blocks";
  EXPECT_EQ(slots_planned(plan, 128), slots_seen(batch, 16));
}

/// What a row's results are made of: for each block in the order of merging, its pages, those that the row
/// does not see left out. Blocks of which it sees nothing do not count.
std::vector<std::vector<AttentionPage>> recipe(const AttentionPlan& plan, int32_t row) {
  std::vector<std::vector<AttentionPage>> blocks;
  std::vector<AttentionItem> items = plan.items;  // in the order of their partial results
  items.insert(items.end(), plan.document_items.begin(), plan.document_items.end());
  std::stable_sort(items.begin(), items.end(), [](const AttentionItem& a, const AttentionItem& b) {
    return a.first_partial < b.first_partial;
  });
  for (const AttentionItem& item : items) {
    for (int32_t i = 0; i < item.row_count; ++i) {
      if (plan.rows[static_cast<size_t>(item.first_row + i)] != row) continue;
      auto& block = blocks.emplace_back();
      for (int32_t p = 0; p < item.page_count; ++p) {
        AttentionPage page = plan.pages[static_cast<size_t>(item.first_page + p)];
        const int32_t number = item.row_offset + i;
        if (number < page.first_row || number >= page.last_row || page.base + number <= 0) continue;
        page.keys = std::min(page.keys, page.base + number);
        page.base = page.first_row = page.last_row = 0;
        block.push_back(page);
      }
      if (block.empty()) blocks.pop_back();
    }
  }
  return blocks;
}

TEST(AttentionPlan, FixedPlansDoNotDependOnOtherRows) {
  std::mt19937 random(4);
  int64_t several = 0;
  for (int round = 0; round < 20; ++round) {
    test::LooksShape shape;
    shape.longest = round % 2 == 0 ? 5000 : 200;
    shape.most_rows = 200;
    test::RandomLooks looks = make_random_looks(random, shape);
    StepBatch& whole = looks.batch;
    whole.positions.assign(whole.tokens.size(), 0);
    whole.kv_slots.assign(whole.tokens.size(), 0);
    whole.decode_tokens = whole.rows() / 2;
    if (round % 4 >= 2) test::weigh_apart(random, {0.5f, 0.8f}, whole);
    const AttentionPlanner planner = make_attention_planner({4, 16, 500, true});
    AttentionPlan plan, part_plan;
    planner(whole, 0, plan);
    EXPECT_EQ(slots_planned(plan, static_cast<size_t>(whole.rows())), slots_seen(whole, 16));
    check_partials(plan);
    // The same rows in two steps, cut anywhere.
    const int32_t cut = std::uniform_int_distribution(1, whole.rows() - 1)(random);
    const auto [first, second] = split_batch(whole, cut);
    planner(second, 0, part_plan);
    for (int32_t row = cut; row < whole.rows(); ++row) {
      const auto alone = recipe(part_plan, row - cut), together = recipe(plan, row);
      ASSERT_EQ(alone.size(), together.size()) << "row " << row;
      several += alone.size() > 1;
      for (size_t block = 0; block < alone.size(); ++block) {
        ASSERT_EQ(alone[block].size(), together[block].size());
        for (size_t i = 0; i < alone[block].size(); ++i) {
          EXPECT_EQ(alone[block][i].slot, together[block][i].slot);
          EXPECT_EQ(alone[block][i].keys, together[block][i].keys);
        }
      }
    }
  }
  EXPECT_GT(several, 100);
}

}  // namespace
}  // namespace sheaf

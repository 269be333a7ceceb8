// The work of a stack against its mask: a row attends to the keys that the mask gives it, no more.
#include <gtest/gtest.h>

#include "core/backend/peak_rates.h"
#include "core/methods/method.h"
#include "core/segments/stack.h"
#include "tests/random_parts.h"
#include "tests/segments/mask.h"

namespace sheaf {
namespace {

using test::make_random_records;

/// A plain layer.
const LayerWindows kPlain{{0, 1}};

/// By an explicit loop over layers, rows and keys.
Work from_mask(const Stack& stack, const LayerWindows& windows = kPlain) {
  Work work;
  std::vector<TokenPlace> places;
  const std::vector<int32_t> rows = stack.most_keys();
  for (size_t i = 0; i < rows.size(); ++i)
    for (int32_t t = 0; t < rows[i]; ++t) places.push_back({static_cast<SegmentId>(i), t});
  const auto mask = dense_mask(stack, places);
  work.rows = static_cast<int64_t>(places.size());
  const auto position = [&](size_t token) {
    return stack.segments[static_cast<size_t>(places[token].segment)].first_position + places[token].index;
  };
  for (const auto& [window, layers] : windows)
    for (size_t row = 0; row < places.size(); ++row)
      for (size_t key = 0; key < places.size(); ++key)
        if (mask[row * places.size() + key] && (window == 0 || position(key) > position(row) - window))
          work.keys += layers;
  for (const Slot& slot : stack.slots) work.picks += slot.prompts() * slot.max_tokens;
  return work;
}

void expect_equal(const Work& work, const Work& wanted) {
  EXPECT_EQ(work.rows, wanted.rows);
  EXPECT_EQ(work.keys, wanted.keys);
  EXPECT_EQ(work.picks, wanted.picks);
}

TEST(WorkCount, EqualsTheCellsOfTheMask) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const auto records = make_random_records({.records = 3}, seed);
    std::vector<Stack> stacks;
    build_tree(records, stacks);
    build_joint_tree(records, stacks);
    build_positional(records, false, stacks);
    build_positional(records, true, stacks);
    build_separate(std::span(records).first(1), stacks);
    auto rows = records;
    test::add_random_chains(rows, 4, 9, seed);
    build_pced(rows, {}, false, stacks);  // a document that a row has twice would count once
    for (const Stack& stack : stacks) {
      for (const LayerWindows& windows : {kPlain, LayerWindows{{0, 2}, {7, 5}, {40, 1}}}) {
        WorkCount count(windows);
        count.add(stack);
        expect_equal(count.work(), from_mask(stack, windows));
      }
    }
  }
}

TEST(WorkCount, CountsSharedSegmentsOfSeveralStacksOnce) {
  const auto records = make_random_records({.records = 4, .own_questions = true}, 3);
  std::vector<Stack> tree, prefix;
  build_tree(records, tree);
  build_prefix(records, prefix);
  ASSERT_GT(prefix.size(), 4u);
  WorkCount together(kPlain), apart(kPlain);
  together.add(tree[0]);
  for (const Stack& stack : prefix) apart.add(stack);
  expect_equal(apart.work(), together.work());
}

TEST(Work, CountsAttendedKeysByLayer) {
  ModelConfig config;
  config.context = 8192;
  config.heads = 3;
  config.head_dim = 5;
  config.layers.assign(6, {.window = 512});
  config.layers[5].window = 0;
  // Two prompts of 4,000 tokens that begin alike with 300, and a short one.
  Work work;
  const LayerWindows windows = layer_windows(config);
  work.add_chain(0, 300, windows);
  work.add_chain(300, 3700, windows);
  work.add_chain(300, 3700, windows);
  work.add_chain(0, 20, windows);
  int64_t rows = 0, keys = 0;
  for (const auto& [first, end] : {std::pair{0, 4000}, {300, 4000}, {0, 20}})
    for (int64_t row = first; row < end; ++row, ++rows)
      for (const LayerConfig& layer : config.layers)
        for (int64_t key = 0; key <= row; ++key)
          if (layer.window == 0 || key > row - layer.window) ++keys;
  EXPECT_EQ(work.rows, rows);
  EXPECT_EQ(work.keys, keys);
  EXPECT_DOUBLE_EQ(attention_flops(work, config), 4.0 * 3 * 5 * static_cast<double>(keys));
  // A window that no prompt reaches hides nothing.
  for (LayerConfig& layer : config.layers) layer.window = 8192;
  EXPECT_EQ(layer_windows(config), (LayerWindows{{0, 6}}));
}

TEST(Work, FlopsEqualTheHandCount) {
  ModelConfig config;
  config.layers.resize(1);
  config.hidden = 2;
  config.ffn = 3;
  config.heads = 1;
  config.kv_heads = 1;
  config.head_dim = 4;
  config.vocab = 5;
  // A layer has 4 matrices of 2 × 4 and 3 of 2 × 3: 50 weights.
  const Work work{10, 7, 3};
  EXPECT_EQ(gemm_flops(work, config), 2 * 10 * 50 + 2 * 3 * 2 * 5);
  EXPECT_EQ(attention_flops(work, config), 4 * 7 * 4);
  EXPECT_DOUBLE_EQ(least_seconds(work, config, {106, 11.2, 106}), 20);
}

}  // namespace
}  // namespace sheaf

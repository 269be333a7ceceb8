// The work of a stack against its mask: a row attends to the keys that the mask gives it, no more.
#include <gtest/gtest.h>
#include <numeric>

#include "core/methods/method.h"
#include "core/segments/stack.h"
#include "tests/random_parts.h"
#include "tests/segments/mask.h"

namespace sheaf {
namespace {

using test::make_random_records;

Work from_mask(const Stack& stack) {
  Work work;
  std::vector<TokenPlace> places;
  const std::vector<int32_t> rows = stack.most_keys();
  for (size_t i = 0; i < rows.size(); ++i)
    for (int32_t t = 0; t < rows[i]; ++t) places.push_back({static_cast<SegmentId>(i), t});
  const auto mask = dense_mask(stack, places);
  work.rows = static_cast<int64_t>(places.size());
  work.keys = std::accumulate(mask.begin(), mask.end(), int64_t{0});
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
      WorkCount count;
      count.add(stack);
      expect_equal(count.work(), from_mask(stack));
    }
  }
}

TEST(WorkCount, CountsSharedSegmentsOfSeveralStacksOnce) {
  const auto records = make_random_records({.records = 4, .own_questions = true}, 3);
  std::vector<Stack> tree, prefix;
  build_tree(records, tree);
  build_prefix(records, prefix);
  ASSERT_GT(prefix.size(), 4u);
  WorkCount together, apart;
  together.add(tree[0]);
  for (const Stack& stack : prefix) apart.add(stack);
  expect_equal(apart.work(), together.work());
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

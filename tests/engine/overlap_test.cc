// Steps in flight side by side: the answers are those of one step at a time, to the bit.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "cpu/cpu_backend.h"
#include "tests/engine/decode.h"
#include "tests/engine/delayed_backend.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::decode, test::expect_same, test::random_stacks, test::tight_pool;
using test::Delayed, test::When, test::Answers;
using test::make_random_model;
using test::make_random_records;

TEST(Overlap, NeverChangesAnAnswer) {
  int64_t started = 0, overlapped = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const Model model = make_random_model({}, seed);
    for (int kind = 0; kind < test::kKinds; ++kind) {
      const auto stacks = random_stacks(seed, kind);
      EngineOptions options{.tokens_per_step = 40, .pages = 2000, .page_size = 16, .seed = seed};
      if (seed % 4 == 1) options.temperature = 1;
      const auto plain = make_quick_backend(model, 1);
      const Answers expected = decode(*plain, stacks, options);
      ASSERT_EQ(expected.size(), 36u);
      for (const auto& [rows, tight, at_once] :
           {std::tuple{40, false, 2}, {7, true, 2}, {1, true, 2}, {100, true, 3}, {13, false, 3}}) {
        options.tokens_per_step = rows;
        options.page_size = tight ? 4 : 16;
        options.pages = tight ? tight_pool(stacks) : 2000;
        const auto inner = make_quick_backend(model, 1);
        Delayed backend(*inner, at_once, rows % 2 ? When::at_finish : When::on_a_thread);
        const std::string what =
            fmt::format("seed {}, kind {}, {} rows, {} steps at once", seed, kind, rows, at_once);
        expect_same(expected, decode(backend, stacks, options, nullptr, rows == 7 ? 3 : 0), what);
        started += backend.started;
        overlapped += backend.overlapped;
      }
    }
  }
  EXPECT_GT(overlapped, started / 4) << "steps hardly ever ran side by side";
}

TEST(Overlap, AStepLessThanHalfFullWaits) {
  // The prompt takes two steps, so its slots start at different times. Decoding is thin then: both lots join
  // rather than take turns.
  const Model model = make_random_model({}, 4);
  const auto records = make_random_records({.records = 4, .questions = 4, .max_tokens = 9}, 4);
  std::vector<Stack> stacks;
  build_tree(records, stacks);
  const auto inner = make_quick_backend(model, 1);
  Delayed backend(*inner, 2, When::at_finish);
  const auto half = static_cast<int32_t>(stacks[0].prompt_tokens() / 2 + 1);
  ASSERT_GT(half, 40);
  decode(backend, stacks, {.tokens_per_step = half, .pages = 2000});
  EXPECT_GT(backend.overlapped, 0);
  EXPECT_LE(backend.started, 2 + 9);
}

TEST(Overlap, AnErrorLeavesNoStepInFlight) {
  const Model model = make_random_model({}, 5);
  for (const std::string where : {"source", "sink", "backend"}) {
    const auto stacks = random_stacks(5, 2);
    const auto inner = make_quick_backend(model, 1);
    Delayed backend(*inner, 2, When::on_a_thread);
    if (where == "backend") backend.fail_after = 6;
    const StopRules rules(61, {});
    Engine engine(backend, rules, {.tokens_per_step = 20, .pages = 300});
    size_t next = 0;
    EXPECT_THROW(engine.run(
                     [&]() -> std::optional<Stack> {
                       if (where == "source" && next == 9) fail("the corpus is gone");
                       if (next == stacks.size()) return std::nullopt;
                       return stacks[next++];
                     },
                     [&](Stack&&, std::vector<Answer>&&) {
                       if (where == "sink") fail("the disk is full");
                     }),
                 Error)
        << where;
    EXPECT_GT(backend.overlapped, 0) << where;
  }
}

}  // namespace
}  // namespace sheaf

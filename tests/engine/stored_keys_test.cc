// Keys and values from a store: the answers are those without one, to the bit, and nothing is computed twice.
#include <gtest/gtest.h>
#include <map>

#include "cpu/cpu_backend.h"
#include "tests/engine/decode.h"
#include "tests/engine/delayed_backend.h"
#include "tests/engine/shelf_store.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::decode, test::expect_same, test::random_stacks, test::tight_pool, test::Answers;
using test::ShelfStore;

/// Tokens of the segments that may be kept, each counted once.
int64_t common_tokens(const std::vector<Stack>& stacks) {
  ShelfStore names;
  std::map<KvKey, int64_t> tokens;
  for (const Stack& stack : stacks) {
    std::vector<std::optional<KvKey>> keys;
    for (const Segment& segment : stack.segments) {
      const bool common = segment.shared && (segment.role == Role::instruction ||
                                             segment.role == Role::document || segment.role == Role::context);
      std::vector<KvKey> seen;
      for (const Sight& sight : segment.sees)
        if (const auto& key = keys[static_cast<size_t>(sight.segment)]) seen.push_back(*key);
      keys.emplace_back();
      if (!common || seen.size() < segment.sees.size()) continue;
      keys.back() = names.key(segment, seen, 0);
      tokens[*keys.back()] = std::ssize(segment.tokens);
    }
  }
  int64_t sum = 0;
  for (const auto& [_, count] : tokens) sum += count;
  return sum;
}

TEST(StoredKeys, AnswersAreTheSameAndNothingIsComputedTwice) {
  int64_t read = 0;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    const Model model = test::make_random_model({.change = seed > 4 ? test::use_windows : nullptr}, seed);
    const Precision precision = seed % 3 == 0   ? Precision::f32
                                : seed % 3 == 1 ? Precision::int16
                                                : Precision::int8;
    for (int kind = 0; kind < test::kKinds; ++kind) {
      const auto stacks = random_stacks(seed, kind);
      const EngineOptions plain{.tokens_per_step = 40,
                                .pages = 2000,
                                .page_size = seed % 2 == 0 ? 4 : 16,
                                .whole_pages = seed % 4 == 0,
                                .temperature = seed == 5 ? 1.0f : 0.0f,
                                .seed = seed};
      const auto without = make_quick_backend(model, 1, precision);
      EngineStats computed;
      const Answers expected = decode(*without, stacks, plain, &computed);

      ShelfStore store;
      EngineOptions options = plain;
      options.store = &store;
      const std::string what = fmt::format("seed {}, kind {}", seed, kind);
      EngineStats first, second;
      const auto one = make_quick_backend(model, 1, precision);
      expect_same(expected, decode(*one, stacks, options, &first), what + ", empty store");
      EXPECT_EQ(first.prefill_tokens, computed.prefill_tokens);
      EXPECT_EQ(first.read_tokens, 0);
      // A segment in whole pages and the same one elsewhere lie in different ways.
      if (!plain.whole_pages) {
        EXPECT_EQ(store.tokens_kept, common_tokens(stacks)) << what;
      }

      for (const bool slow : {false, true}) {
        store.mood = slow ? ShelfStore::Mood::slow : ShelfStore::Mood::ready;
        options.tokens_per_step = slow ? 11 : 40;
        const auto two = make_quick_backend(model, 1, precision);
        expect_same(expected, decode(*two, stacks, options, &second), what + ", full store");
        EXPECT_EQ(second.read_tokens, store.tokens_kept) << what;
        EXPECT_EQ(second.prefill_tokens + second.read_tokens, computed.prefill_tokens) << what;
        read += second.read_tokens;
      }
      const auto three = make_quick_backend(model, 1, precision);
      const StopRules rules(61, {});
      Engine engine(*three, rules, options);
      for (const Stack& stack : stacks) engine.expect(stack);
      EXPECT_EQ(store.unknown, 0) << what << ": expected under other names than fetched";
      EXPECT_EQ(store.expected > 0, store.tokens_kept > 0);
    }
  }
  EXPECT_GT(read, 1000);
}

TEST(StoredKeys, RoundedOnesDecideAnswersAlone) {
  int64_t read = 0;
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const Model model = test::make_random_model({.change = seed > 4 ? test::use_windows : nullptr}, seed);
    const Precision precision = seed % 2 == 0 ? Precision::f32 : Precision::int16;
    for (int kind = 0; kind < test::kKinds; ++kind) {
      const auto stacks = random_stacks(seed, kind);
      EngineOptions options{.tokens_per_step = 40, .pages = 2000, .seed = seed};
      const auto plain = make_quick_backend(model, 1, precision),
                 first = make_quick_backend(model, 1, precision);
      const Answers expected = decode(*plain, stacks, options);
      ShelfStore store(KvForm::rounded);
      options.store = &store;
      const std::string what = fmt::format("seed {}, kind {}", seed, kind);
      expect_same(expected, decode(*first, stacks, options),
                  what + ": whoever computes keys uses them as they are");
      EngineStats stats;
      const auto second = make_quick_backend(model, 1, precision),
                 third = make_quick_backend(model, 1, precision);
      const Answers rounded = decode(*second, stacks, options, &stats);
      EXPECT_EQ(stats.read_tokens, store.tokens_kept) << what;
      read += stats.read_tokens;
      store.mood = ShelfStore::Mood::slow;
      options.tokens_per_step = 11;
      expect_same(rounded, decode(*third, stacks, options), what + ", another step");
    }
  }
  EXPECT_GT(read, 1000);
}

TEST(StoredKeys, WithStepsSideBySideInATightPool) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const Model model = test::make_random_model({}, seed);
    for (int kind = 0; kind < test::kKinds; ++kind) {
      const auto stacks = random_stacks(seed, kind);
      EngineOptions options{.tokens_per_step = 40, .pages = 2000, .page_size = 4, .seed = seed};
      const auto without = make_quick_backend(model, 1);
      const Answers expected = decode(*without, stacks, options);
      ShelfStore store;
      options.store = &store;
      options.pages = tight_pool(stacks);
      for (const int rows : {40, 7, 13}) {
        store.mood = rows == 13 ? ShelfStore::Mood::slow : ShelfStore::Mood::ready;
        options.tokens_per_step = rows;
        const auto inner = make_quick_backend(model, 1);
        test::Delayed backend(*inner, 2, rows % 2 ? test::When::at_finish : test::When::on_a_thread);
        expect_same(expected, decode(backend, stacks, options, nullptr, rows == 7 ? 3 : 0),
                    fmt::format("seed {}, kind {}, {} rows", seed, kind, rows));
      }
    }
  }
}

TEST(StoredKeys, WhatCannotBeReadIsComputed) {
  const Model model = test::make_random_model({}, 3);
  for (const auto mood : {ShelfStore::Mood::broken, ShelfStore::Mood::cut}) {
    const auto stacks = random_stacks(3, 0);
    ShelfStore store;
    EngineOptions options{.tokens_per_step = 40, .pages = 2000, .store = &store};
    const auto first = make_quick_backend(model, 1);
    const Answers expected = decode(*first, stacks, options);
    store.mood = mood;
    EngineStats stats;
    const auto second = make_quick_backend(model, 1);
    expect_same(expected, decode(*second, stacks, options, &stats), "a broken store");
    EXPECT_EQ(stats.read_tokens, 0);
  }
}

TEST(StoredKeys, AStackWithoutQuestionsIsOnlyPutIntoTheStore) {
  const Model model = test::make_random_model({}, 4);
  auto stacks = random_stacks(4, 0), prompts = stacks;
  for (Stack& stack : prompts) {
    std::erase_if(stack.segments, [](const Segment& segment) { return !segment.shared; });
    stack.slots.clear();
  }
  ShelfStore store;
  EngineOptions options{.tokens_per_step = 20, .pages = 2000, .store = &store};
  EngineStats filling, asking;
  const auto inner = make_quick_backend(model, 1);
  test::Delayed first(*inner, 2, test::When::on_a_thread);
  EXPECT_TRUE(decode(first, prompts, options, &filling).empty());
  EXPECT_EQ(filling.prefill_tokens, common_tokens(stacks));
  const auto again = make_quick_backend(model, 1);
  EXPECT_TRUE(decode(*again, prompts, options, &asking).empty());
  EXPECT_EQ(asking.steps, 0);
  EXPECT_EQ(asking.read_tokens, common_tokens(stacks));
  const auto second = make_quick_backend(model, 1), without = make_quick_backend(model, 1);
  const Answers answers = decode(*second, stacks, options, &asking);
  options.store = nullptr;
  expect_same(decode(*without, stacks, options), answers, "a store filled before");
  EXPECT_EQ(asking.read_tokens, common_tokens(stacks));
}

}  // namespace
}  // namespace sheaf

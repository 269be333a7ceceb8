// Speculation changes no answer, whatever is proposed, and proposes only what should pay.
#include "core/engine/speculate.h"

#include <gtest/gtest.h>

#include "core/engine/engine.h"
#include "cpu/cpu_backend.h"
#include "tests/engine/decode.h"
#include "tests/engine/delayed_backend.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::Answers, test::decode, test::expect_same, test::long_stacks, test::MakeBackend, test::quick;
using test::make_random_model;

constexpr Speculation kEverything{.lookup = true, .sparing = false};

class SpeculateOn : public testing::TestWithParam<MakeBackend> {};

TEST_P(SpeculateOn, EveryMethodGivesTheSameAnswers) {
  EngineStats sum;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const Model model = make_random_model({.change = seed == 2 ? test::use_windows : nullptr}, 60 + seed);
    for (int kind = 0; kind < test::kKinds; ++kind) {
      const std::vector<Stack> stacks = long_stacks(seed, kind);
      EngineOptions options{.tokens_per_step = 40, .pages = 2000, .page_size = 16, .seed = seed};
      if (seed == 1) options.temperature = 0.3f;
      const auto plain = GetParam()(model);
      EngineStats without;
      const Answers expected = decode(*plain, stacks, options, &without);
      EXPECT_EQ(without.proposed_tokens, 0);
      options.speculation = kEverything;
      for (const auto& [rows, tight, whole_pages] :
           {std::tuple{200, false, false}, {60, true, false}, {40, false, true}}) {
        options.tokens_per_step = rows;
        options.page_size = tight ? 4 : 16;
        options.pages = tight ? test::tight_pool(stacks) : 2000;
        options.whole_pages = whole_pages;
        const auto backend = GetParam()(model);
        EngineStats stats;
        expect_same(expected, decode(*backend, stacks, options, &stats, rows == 60 ? 3 : 0),
                    fmt::format("seed {}, kind {}, {} tokens a step", seed, kind, rows));
        EXPECT_EQ(stats.answer_tokens, without.answer_tokens);
        EXPECT_EQ(stats.alone_tokens, without.alone_tokens);
        EXPECT_EQ(stats.decode_tokens - stats.proposed_tokens + stats.accepted_tokens, without.decode_tokens)
            << "seed " << seed << ", kind " << kind;
        const bool together = kind == 3 || kind == 4 || kind == 6;  // positional values, chains
        EXPECT_LE(stats.proposed_tokens, together ? 0 : stats.decode_tokens) << "kind " << kind;
        sum += stats;
      }
    }
  }
  EXPECT_GT(sum.accepted_tokens, 1000);
  EXPECT_GT(sum.proposed_tokens, sum.accepted_tokens + 1000) << "nothing was proposed wrongly";
}

std::string precision_name(const testing::TestParamInfo<MakeBackend>& backend) {
  constexpr const char* kNames[] = {"f32", "int16", "int8"};
  return kNames[backend.index];
}
INSTANTIATE_TEST_SUITE_P(Cpu, SpeculateOn,
                         testing::Values(&quick<Precision::f32>, &quick<Precision::int16>,
                                         &quick<Precision::int8>),
                         precision_name);

TEST(Speculate, StepsInFlightSideBySideGiveTheSameAnswers) {
  int64_t accepted = 0, overlapped = 0;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const Model model = make_random_model({}, seed);
    for (const int kind : {0, 2, 7}) {
      const std::vector<Stack> stacks = long_stacks(seed, kind);
      EngineOptions options{.tokens_per_step = 60, .pages = 2000};
      const auto plain = make_quick_backend(model, 1);
      const Answers expected = decode(*plain, stacks, options);
      options.speculation = kEverything;
      options.page_size = 4;
      options.pages = test::tight_pool(stacks);
      const auto inner = make_quick_backend(model, 1);
      test::Delayed backend(*inner, 2, test::When::on_a_thread);
      EngineStats stats;
      expect_same(expected, decode(backend, stacks, options, &stats), "two steps at once");
      accepted += stats.accepted_tokens;
      overlapped += backend.overlapped;
    }
  }
  EXPECT_GT(accepted, 200);
  EXPECT_GT(overlapped, 4);
}

TEST(Speculate, ACopiedAnswerTakesFewSteps) {
  // The only answer allowed is 20 tokens long: whatever the model, every token of it can be proposed.
  const Model model = make_random_model({}, 5);
  auto records = test::make_random_records({.records = 1, .questions = 1, .own_questions = true}, 5);
  Tokens copy;
  for (TokenId token = 20; token < 40; ++token) copy.push_back(token);
  records[0].own_questions[0].allowed = std::make_shared<AnswerTrie>(std::vector<Tokens>{copy}, -1);
  records[0].own_questions[0].max_tokens = 30;
  std::vector<Stack> stacks;
  build_separate(records, stacks);
  const auto backend = make_quick_backend(model, 1);
  EngineStats without, with;
  const EngineOptions options{.tokens_per_step = 64, .pages = 100};
  EngineOptions guessing = options;
  guessing.speculation = kEverything;
  expect_same(decode(*backend, stacks, options, &without), decode(*backend, stacks, guessing, &with), "copy");
  EXPECT_EQ(without.steps, 20);
  EXPECT_EQ(with.steps, 4);  // the prompt, 9, 9, and the last token
  EXPECT_EQ(with.proposed_tokens, 16);
  EXPECT_EQ(with.accepted_tokens, 16);
}

/// A document, a question that continues it, and one free answer.
Stack one_prompt(Tokens document, Tokens question) {
  Stack stack;
  const SegmentId seen = stack.add({Role::document, std::move(document), 0, {}, true});
  Slot slot;
  slot.prompt = slot.answer =
      stack.add({Role::question, std::move(question), stack.end_position(seen), {{seen}}, false});
  slot.max_tokens = 30;
  stack.slots.push_back(slot);
  return stack;
}

class SpeculationGuesses : public testing::Test {
 protected:
  Guess guess(const Stack& stack, const Tokens& answer, AllowedAnswers::Node node = AllowedAnswers::root) {
    return speculator.guess(stack, stack.slots[0], answer, node);
  }
  StopRules rules{100, {3, 7}};
  EngineStats stats;
  Speculator speculator{{.lookup = true, .most = 4}, rules, stats};
};

TEST_F(SpeculationGuesses, TheLongestMatchIsContinued) {
  // 11 12 13 stands twice before another token; 10 before it decides.
  const Stack stack = one_prompt({10, 11, 12, 13, 50, 51, 52, 53, 54, 9, 11, 12, 13, 60, 61}, {40, 10});
  EXPECT_EQ(guess(stack, {11, 12, 13}).tokens, (Tokens{50, 51, 52, 53}));
  EXPECT_EQ(guess(stack, {9, 11, 12}).tokens, (Tokens{13, 60, 61}));
  EXPECT_EQ(guess(stack, {99}).tokens, Tokens());
  // Of two that are equally long the last.
  EXPECT_EQ(guess(stack, {44, 13}).tokens, (Tokens{60, 61}));
  // The answer itself.
  EXPECT_EQ(guess(stack, {70, 71, 72, 70}).tokens, (Tokens{71, 72, 70, 71}));
}

TEST_F(SpeculationGuesses, NothingIsGuessedPastTheEnd) {
  Stack stack = one_prompt({20, 21, 22, 3, 23, 24}, {40});
  EXPECT_EQ(guess(stack, {20}).tokens, (Tokens{21, 22})) << "3 ends the text";
  stack.slots[0].max_tokens = 3;
  EXPECT_EQ(guess(stack, {20}).tokens, (Tokens{21})) << "the third token is picked, not computed";
  stack.slots[0].max_tokens = 2;
  EXPECT_EQ(guess(stack, {20}).tokens, Tokens());
}

TEST_F(SpeculationGuesses, OnlyAllowedTokensAreProposed) {
  Stack stack = one_prompt({20, 21, 22, 23}, {40});
  const auto trie =
      std::make_shared<AnswerTrie>(std::vector<Tokens>{{20, 21, 30, 31}, {20, 22}, {20, 21, 33}}, -1);
  stack.slots[0].allowed = trie;
  const AllowedAnswers::Node node = trie->advance(AllowedAnswers::root, 20);
  // 21 as in the document; then 22 is not allowed.
  EXPECT_EQ(guess(stack, {20}, node).tokens, (Tokens{21}));
  // One way on: 30; 31 completes the answer.
  stack.slots[0].allowed = std::make_shared<AnswerTrie>(std::vector<Tokens>{{5, 30, 31}, {6}}, -1);
  EXPECT_EQ(guess(stack, {5}, stack.slots[0].allowed->advance(AllowedAnswers::root, 5)).tokens, (Tokens{30}));
}

TEST_F(SpeculationGuesses, EarlierAnswersAreSearched) {
  const Stack stack = one_prompt({20, 21}, {40, 41});
  speculator.remember(stack, stack.slots[0], {50, 51, 52, 53});
  EXPECT_EQ(guess(stack, {50}).tokens, (Tokens{51, 52, 53}));
}

class SpeculationBudget : public SpeculationGuesses {
 protected:
  /// Tokens proposed for each of `answers` answers that have 4 tokens more after 8 equal ones.
  int32_t proposed(int32_t answers, double prompt_load = 0, int32_t room = 100) {
    std::vector<Guess> guesses(static_cast<size_t>(answers), {{1, 2, 3, 4}, {8, 8, 8, 8}});
    std::vector<OpenAnswer> open;
    for (Guess& each : guesses) open.push_back({&each, 0, 0});
    speculator.share_out(open, {answers, prompt_load, room});
    int32_t sum = 0;
    for (const Guess& each : guesses) sum += each.proposed;
    return sum;
  }
};

TEST_F(SpeculationBudget, ProposesWhereStepsTakeTheSameTimeWithMoreTokens) {
  EXPECT_EQ(proposed(1), 0) << "nothing is known of steps";
  speculator.count_step(1, 0.010);
  speculator.count_step(64, 0.012);
  EXPECT_EQ(proposed(1), 4);
  EXPECT_EQ(proposed(8), 32);
  EXPECT_EQ(proposed(8, 0, 10), 10) << "the step has no more room";
}

TEST_F(SpeculationBudget, ProposesNothingWhereEachTokenCostsAsMuch) {
  for (const int load : {1, 2, 4, 8, 16, 64}) speculator.count_step(load, 0.010 * load);
  EXPECT_EQ(proposed(1), 0);
  EXPECT_EQ(proposed(8), 0);
}

TEST_F(SpeculationBudget, ProposesNothingThatIsAlwaysWrong) {
  speculator.count_step(1, 0.010);
  speculator.count_step(2, 0.013);
  speculator.count_step(64, 0.100);
  EXPECT_GT(proposed(1), 0);
  for (int i = 0; i < 100; ++i) speculator.count_guess(8, false);
  EXPECT_EQ(proposed(1), 0);
  for (int i = 0; i < 200; ++i) speculator.count_guess(8, true);
  EXPECT_GT(proposed(1), 0);
}

TEST_F(SpeculationBudget, AnAnswerThatEndsEarlyAnywaySavesLittle) {
  for (const int load : {1, 2, 4, 8, 16, 64}) speculator.count_step(load, 0.009 + 0.0023 * load);
  Guess guess{{1, 2, 3, 4}, {8, 8, 8, 8}};
  std::vector<OpenAnswer> open(8, {nullptr, 0, 0});
  open[0] = {&guess, 0.95, 0};
  speculator.share_out(open, {8, 0, 100});
  EXPECT_EQ(guess.proposed, 0) << "the others take their steps";
  // Where prompts wait, its place is taken by the next.
  for (int32_t i = 0; i < 8; ++i) open[static_cast<size_t>(i)].group = i;
  for (int i = 0; i < 50; ++i) speculator.count_guess(8, true);
  speculator.share_out(open, {8, 0, 100});
  EXPECT_GT(guess.proposed, 0);
}

TEST(StepCost, InterpolatesBetweenMeasuredSteps) {
  StepCost cost;
  EXPECT_FALSE(cost.known());
  cost.count(2, 0.1);
  EXPECT_DOUBLE_EQ(cost.seconds(1), 0.05) << "in proportion, where nothing else was seen";
  EXPECT_DOUBLE_EQ(cost.seconds(4), 0.2);
  cost.count(10, 0.18);
  EXPECT_DOUBLE_EQ(cost.seconds(1), 0.09) << "as steep as between 2 and 10";
  cost = {};
  cost.count(2, 0.1);
  cost.count(10, 0.5);
  EXPECT_DOUBLE_EQ(cost.seconds(6), 0.3);
  EXPECT_DOUBLE_EQ(cost.seconds(10), 0.5);
  // A step that took long while the machine was busy counts less than a quick one.
  cost.count(10, 0.9);
  EXPECT_LT(cost.seconds(10), 0.6);
  cost.count(10, 0.4);
  EXPECT_LT(cost.seconds(10), 0.5);
}

}  // namespace
}  // namespace sheaf

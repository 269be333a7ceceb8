// A draft changes no answer, whatever it proposes; what it computes is what the model would; and it is asked
// only while that pays.
#include "core/engine/draft.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/engine/engine.h"
#include "cpu/cpu_backend.h"
#include "tests/engine/decode.h"
#include "tests/engine/delayed_backend.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::Answers, test::decode, test::expect_same, test::long_stacks, test::make_random_model;

/// The same stacks with a draft that computes by `guesser`.
EngineStats same_with_draft(Backend& model, Backend& guesser, const DraftOptions& draft_options,
                            EngineOptions options, const std::vector<Stack>& stacks, const std::string& what,
                            int interrupt_every = 0) {
  EngineStats without, with;
  const Answers expected = decode(model, stacks, options, &without);
  Draft draft(guesser, draft_options);
  options.speculation = {.draft = &draft, .sparing = false};
  expect_same(expected, decode(model, stacks, options, &with, interrupt_every), what);
  EXPECT_EQ(with.answer_tokens, without.answer_tokens) << what;
  EXPECT_EQ(with.decode_tokens - with.proposed_tokens + with.accepted_tokens, without.decode_tokens) << what;
  return with;
}

TEST(Draft, EveryMethodGivesTheSameAnswers) {
  EngineStats equal, smaller, rounded;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const Model model = make_random_model({.change = seed == 3 ? test::use_windows : nullptr}, 60 + seed);
    for (int kind = 0; kind < test::kKinds; ++kind) {
      const std::vector<Stack> stacks = long_stacks(seed, kind);
      EngineOptions options{.tokens_per_step = 200, .pages = 2000, .whole_pages = seed == 2, .seed = seed};
      if (seed == 1) options.temperature = 0.3f;
      const std::string what = fmt::format("seed {}, kind {}", seed, kind);
      const auto backend = make_quick_backend(model, 2), same = make_quick_backend(model, 2),
                 other = make_quick_backend(make_random_model({.layers = 1}, seed), 1),
                 coarse = make_quick_backend(model, 2, Precision::int8);
      equal += same_with_draft(*backend, *same, {.tokens_per_step = 64}, options, stacks, what + ", equal");
      smaller += same_with_draft(*backend, *other, {.tokens_per_step = 7, .pages = 12}, options, stacks,
                                 what + ", smaller", 3);
      rounded += same_with_draft(*backend, *coarse, {}, options, stacks, what + ", int8");
    }
  }
  EXPECT_GT(equal.accepted_tokens, 1000);
  EXPECT_GT(equal.accepted_tokens, equal.proposed_tokens * 6 / 10) << "a quarter is sampled";
  EXPECT_GT(rounded.accepted_tokens, rounded.proposed_tokens / 2);
  EXPECT_LT(rounded.accepted_tokens, rounded.proposed_tokens);
  EXPECT_GT(smaller.proposed_tokens, 1000);
  EXPECT_LT(smaller.accepted_tokens, smaller.proposed_tokens / 4);
}

TEST(Draft, TheModelAsItsOwnDraftIsAlwaysRight) {
  for (const int kind : {0, 2, 7}) {
    const Model model = make_random_model({}, 5);
    const auto backend = make_quick_backend(model, 2), same = make_quick_backend(model, 1);
    const EngineStats stats = same_with_draft(*backend, *same, {}, {.tokens_per_step = 400, .pages = 2000},
                                              long_stacks(5, kind), fmt::format("kind {}", kind));
    EXPECT_GT(stats.proposed_tokens, 100);
    EXPECT_EQ(stats.accepted_tokens, stats.proposed_tokens);
    // Its prompts and answers were computed once, not again for each step.
    EXPECT_LT(stats.draft_tokens, stats.prefill_tokens + 2 * stats.answer_tokens);
  }
}

TEST(Draft, StepsInFlightSideBySideGiveTheSameAnswers) {
  const Model model = make_random_model({}, 3);
  const auto inner = make_quick_backend(model, 1), same = make_quick_backend(model, 1);
  test::Delayed backend(*inner, 2, test::When::on_a_thread);
  const EngineStats stats = same_with_draft(backend, *same, {}, {.tokens_per_step = 60, .pages = 2000},
                                            long_stacks(3, 2), "two steps at once");
  EXPECT_GT(stats.accepted_tokens, 50);
}

TEST(Draft, MayHaveMoreTokensThanTheModel) {
  const Model model = make_random_model({}, 5), larger = make_random_model({.vocab = 160}, 5);
  ASSERT_LT(model.config.vocab, larger.config.vocab);
  const auto backend = make_quick_backend(model, 1), guesser = make_quick_backend(larger, 1);
  const EngineStats stats = same_with_draft(*backend, *guesser, {}, {.tokens_per_step = 400, .pages = 2000},
                                            long_stacks(5, 0), "larger vocabulary");
  EXPECT_GT(stats.proposed_tokens, 20);
}

TEST(Draft, IsLeftOutOnceItRunsOutOfMemory) {
  const Model model = make_random_model({}, 5);
  const auto backend = make_quick_backend(model, 1), inner = make_quick_backend(model, 1);
  class Short : public test::Delayed {
   public:
    explicit Short(Backend& inner) : Delayed(inner, 1, test::When::at_finish) {}
    void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
      if (++steps > 4) throw OutOfMemory("no memory left");
      Delayed::step(batch, picked, logits);
    }
    int steps = 0;
  } guesser(*inner);
  const EngineStats stats = same_with_draft(*backend, guesser, {}, {.tokens_per_step = 400, .pages = 2000},
                                            long_stacks(5, 0), "short of memory");
  EXPECT_TRUE(stats.draft_failed);
  EXPECT_EQ(guesser.steps, 5);
}

TEST(Draft, AGivenShareOfItsTokensCanBeAssumedRight) {
  const Model model = make_random_model({}, 8);
  const auto backend = make_quick_backend(model, 2),
             other = make_quick_backend(make_random_model({.layers = 1}, 9), 1);
  Draft draft(*other, {});
  std::vector<Stack> stacks = long_stacks(1, 0);
  for (Stack& stack : stacks)
    for (Slot& slot : stack.slots) slot.stop = Stop::text;
  const auto accepted = [&](double share) {
    EngineOptions options{.tokens_per_step = 400, .pages = 2000};
    options.speculation = {.draft = &draft, .most = 1, .sparing = false, .assumed_right = share};
    EngineStats stats;
    decode(*backend, stacks, options, &stats);
    return static_cast<double>(stats.accepted_tokens) / static_cast<double>(stats.proposed_tokens);
  };
  EXPECT_NEAR(accepted(0.8), 0.8, 0.1);
  EXPECT_NEAR(accepted(0.3), 0.3, 0.1);
}

TEST(DraftPay, IsAskedAgainAfterAWhileWhereItDidNotPay) {
  DraftPay pay(0.1);
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(pay.due());
    pay.count_step(1, 0.5, 0.2);
  }
  int paused = 0;
  while (!pay.due()) ++paused;
  EXPECT_EQ(paused, 63);
  for (int i = 0; i < 8; ++i) pay.count_step(1, 0.5, 0.2);
  for (paused = 0; !pay.due();) ++paused;
  EXPECT_EQ(paused, 127);
  for (int i = 0; i < 8; ++i) pay.count_step(1, 0.5, 2);
  EXPECT_TRUE(pay.due());
}

TEST(DraftPay, FollowsOnlyAnswersThatAreLongEnough) {
  DraftPay pay(0.05);
  // A prompt of 1,000 tokens takes the model 1 s, the draft a twentieth of that; a step 0.01 s.
  const auto follows = [&](int64_t decoded, int64_t most = 200, int64_t missing = 1000) {
    return pay.worth_following(0.01 * pay.tokens_left(decoded, most), 0.3, missing, 0.001 * double(missing));
  };
  EXPECT_FALSE(follows(1)) << "nothing is known of answers";
  EXPECT_TRUE(follows(40)) << "it is long already";
  EXPECT_FALSE(follows(40, 45)) << "but cannot be much longer";
  pay.count_answer(100);
  EXPECT_TRUE(follows(1));
  for (int i = 0; i < 50; ++i) pay.count_answer(4);
  EXPECT_FALSE(follows(1));
  EXPECT_TRUE(follows(1, 200, 50)) << "a short prompt";
}

TEST(DraftPay, RoundsTakeWhatWasMeasured) {
  DraftPay pay(0.2);
  EXPECT_DOUBLE_EQ(pay.round_seconds(4, 0.01), 0.002);
  pay.count_round(4, 0.003);
  EXPECT_DOUBLE_EQ(pay.round_seconds(4, 0.01), 0.003);
}

class DraftQuestions : public testing::Test {
 protected:
  DraftQuestions() { stack_.slots[0].max_tokens = 100; }
  /// How many tokens the draft proposes for one answer where steps of 1 and of 64 tokens take so long.
  size_t proposed(double one, double many) {
    const StopRules rules(100, {3, 7});
    EngineStats stats;
    Speculator speculator({.draft = &draft_}, rules, stats, 0.001);
    speculator.count_step(1, one);
    speculator.count_step(64, many);
    speculator.count_step(16, one + (many - one) * 15 / 63);
    if (!speculator.asks_draft()) return 0;
    const auto prompt = draft_.follow(stack_);
    Guess guess;
    std::vector<DraftedAnswer> asked{{{prompt.get(), 0, {20, 21}}, &stack_.slots[0], &guess}};
    speculator.draft(asked, {.answers = 1, .prompt_load = 0, .room = 60});
    return guess.tokens.size();
  }
  const Model model_ = make_random_model({}, 5);
  const std::unique_ptr<Backend> backend_ = make_quick_backend(model_, 1);
  Draft draft_{*backend_, {}};
  Stack stack_ = std::move(test::random_stacks(5, 0)[0]);
};

TEST_F(DraftQuestions, TheDraftIsAskedOnlyWhereFurtherTokensCostLittle) {
  EXPECT_GT(proposed(10, 10.1), 0u);
  const int64_t before = draft_.tokens();
  EXPECT_EQ(proposed(10, 640), 0u);
  EXPECT_EQ(draft_.tokens(), before) << "not even the prompt was computed";
}

}  // namespace
}  // namespace sheaf

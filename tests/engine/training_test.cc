// Training sees what decoding sees: the loss of a decoded answer in its training prompt is the
// log-probability with which it was decoded.
#include <gtest/gtest.h>

#include "core/plan/training_prompt.h"
#include "cpu/cpu_backend.h"
#include "tests/dense_model.h"
#include "tests/engine/decode.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

/// As train/ reads the columns.
std::vector<uint8_t> mask_of(const TrainingPrompt& prompt) {
  const size_t n = prompt.tokens.size();
  std::vector<size_t> segment(n), index(n);
  for (size_t s = 0; s < prompt.segment_starts.size(); ++s) {
    const size_t end =
        s + 1 < prompt.segment_starts.size() ? static_cast<size_t>(prompt.segment_starts[s + 1]) : n;
    for (auto t = static_cast<size_t>(prompt.segment_starts[s]); t < end; ++t) {
      segment[t] = s;
      index[t] = t - static_cast<size_t>(prompt.segment_starts[s]);
    }
  }
  const auto holds = [](const std::vector<int32_t>& list, size_t wanted) {
    return std::ranges::find(list, static_cast<int32_t>(wanted)) != list.end();
  };
  std::vector<uint8_t> mask(n * n);
  for (size_t q = 0; q < n; ++q)
    for (size_t k = 0; k < n; ++k)
      mask[q * n + k] = segment[q] == segment[k]
                            ? index[k] <= index[q]
                            : holds(prompt.sees[segment[q]], segment[k]) ||
                                  (holds(prompt.abreast[segment[q]], segment[k]) && index[k] <= index[q]);
  return mask;
}

double log_probability(const std::vector<double>& logits, int32_t token) {
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  return logits[static_cast<size_t>(token)] - std::log(sum);
}

TEST(Training, SeesWhatDecodingSees) {
  constexpr TokenId kEnd = 3;
  for (uint32_t seed = 1; seed < 5; ++seed) {
    for (int kind = 0; kind < 6; ++kind) {
      const Model model =
          test::make_random_model({.change = seed % 2 == 0 ? test::use_windows : nullptr}, seed);
      const test::DenseModel dense(model);
      const std::vector<Stack> stacks = test::random_stacks(seed, kind);
      const auto backend = make_reference_backend(model);
      const StopRules rules(model.config.vocab, {kEnd});
      Engine engine(*backend, rules, {.tokens_per_step = 64, .pages = 2000, .page_size = 4});
      size_t next = 0;
      int checked = 0;
      engine.run([&] { return next < stacks.size() ? std::optional(stacks[next++]) : std::nullopt; },
                 [&](Stack&& stack, std::vector<Answer>&& answers) {
                   double decoded = 0;
                   const auto prompt = make_training_prompt(stack, rules, [&](const Slot& slot) {
                     const Answer& answer = answers[static_cast<size_t>(&slot - stack.slots.data())];
                     decoded += answer.logprob;
                     Tokens tokens = answer.tokens;
                     if (answer.ending == Ending::end_of_text) tokens.push_back(kEnd);
                     return std::optional(tokens);
                   });
                   ASSERT_TRUE(prompt);
                   EXPECT_EQ(prompt->answers, std::ssize(stack.slots));
                   const auto logits = dense.run(prompt->tokens, prompt->positions, mask_of(*prompt));
                   double learned = 0;
                   for (size_t t = 0; t < prompt->targets.size(); ++t)
                     if (prompt->targets[t] >= 0) learned += log_probability(logits[t], prompt->targets[t]);
                   EXPECT_NEAR(learned, decoded, 1e-3 * std::abs(decoded))
                       << "seed " << seed << ", kind " << kind;
                   ++checked;
                 });
      EXPECT_GT(checked, 0);
    }
  }
}

/// Figure 3 of the HPD paper: values see earlier values up to their own step, keys see none.
TEST(Training, PositionalValuesSeeWhatFigure3OfThePaperShows) {
  auto records = test::make_random_records({.records = 1, .questions = 3, .max_tokens = 4}, 5);
  std::vector<Stack> stacks;
  build_positional(records, false, stacks);
  const StopRules rules(61, {});
  const auto prompt = make_training_prompt(stacks[0], rules, [](const Slot& slot) {
    return std::optional(Tokens(static_cast<size_t>(slot.question) + 2, 9));
  });
  ASSERT_TRUE(prompt);
  // instruction, document, then key and value of each question; a value's last token is never fed.
  EXPECT_EQ(prompt->sees,
            (std::vector<std::vector<int32_t>>{
                {}, {0}, {0, 1}, {0, 1, 2}, {0, 1, 2}, {0, 1, 2, 4}, {0, 1, 2, 4}, {0, 1, 2, 4, 6}}));
  EXPECT_EQ(prompt->abreast, (std::vector<std::vector<int32_t>>{{}, {}, {}, {}, {}, {3}, {}, {3, 5}}));
  const auto length = [&](size_t s) {
    return (s + 1 < prompt->segment_starts.size() ? prompt->segment_starts[s + 1]
                                                  : std::ssize(prompt->tokens)) -
           prompt->segment_starts[s];
  };
  EXPECT_EQ(length(3), 1);
  EXPECT_EQ(length(5), 2);
  EXPECT_EQ(length(7), 3);
}

TEST(Training, LeavesOutWhatNoAnswerNeeds) {
  const auto records = test::make_random_records({.records = 2, .questions = 3, .max_tokens = 4}, 6);
  std::vector<Stack> stacks;
  build_tree(records, stacks);
  const StopRules rules(61, {});
  const auto only = [&](int32_t record, int32_t question) {
    return make_training_prompt(stacks[0], rules, [=](const Slot& slot) {
      return slot.record == record && slot.question == question ? std::optional(Tokens{9, 8}) : std::nullopt;
    });
  };
  const auto prompt = only(1, 2);
  ASSERT_TRUE(prompt);
  EXPECT_EQ(prompt->segment_starts.size(), 3u);  // instruction, document, key
  EXPECT_EQ(prompt->records, std::vector<int32_t>{1});
  Tokens alone = records[1].bin->instruction;
  append(alone, records[1].document);
  append(alone, records[1].bin->opening);
  append(alone, records[1].questions()[2].tokens);
  alone.push_back(9);
  EXPECT_EQ(prompt->tokens, alone);
  EXPECT_EQ(Tokens(prompt->targets.end() - 2, prompt->targets.end()), (Tokens{9, 8}));
  EXPECT_FALSE(only(5, 0));
}

}  // namespace
}  // namespace sheaf

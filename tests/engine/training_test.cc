// Training sees what decoding sees: the loss of a decoded answer in its training prompt is the
// log-probability with which it was decoded.
#include <gtest/gtest.h>
#include <map>

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

/// Entries that the even tokens of an answer name, with two questions each, one of which may list entries
/// too.
std::shared_ptr<const EntryParts> entries_by_tokens(int depth) {
  auto parts = std::make_shared<EntryParts>();
  parts->most_entries = 3;
  parts->most_tokens = 3;
  parts->entries = [](const Tokens& answer) {
    std::vector<Tokens> entries;
    for (const TokenId token : answer)
      if (token % 2 == 0 && entries.size() < 3) entries.push_back({11, token, 12});
    return entries;
  };
  for (const TokenId key : {30, 31}) {
    QuestionParts question;
    question.tokens = {key, 32};
    question.max_tokens = 5;
    if (key == 31 && depth > 1) question.entries = entries_by_tokens(depth - 1);
    parts->questions.push_back(std::move(question));
  }
  return parts;
}

/// What was decoded, to be learned.
WantedAnswer wanted_of(const Answer& answer, size_t fields, TokenId end, double& logprob, int64_t& count) {
  WantedAnswer wanted{answer.tokens, {}};
  if (answer.ending == Ending::end_of_text) wanted.tokens->push_back(end);
  logprob += answer.logprob;
  ++count;
  for (const InnerAnswer& inner : answer.inner) {
    wanted.entries.resize(static_cast<size_t>(inner.entry) + 1);
    wanted.entries.back().resize(fields);
    wanted.entries.back()[static_cast<size_t>(inner.field)] =
        wanted_of(inner.answer, fields, end, logprob, count);
  }
  return wanted;
}

TEST(Training, SeesLaterRoundsAsDecodingSeesThem) {
  constexpr TokenId kEnd = 3;
  int64_t inner = 0;
  for (uint32_t seed = 1; seed < 7; ++seed) {
    const Model model = test::make_random_model({}, 700 + seed);
    const test::DenseModel dense(model);
    auto records = test::make_random_records({.records = 3, .questions = 3, .max_tokens = 6}, seed);
    auto bin = std::make_shared<BinParts>(*records[0].bin);
    bin->questions[1].entries = entries_by_tokens(1 + static_cast<int>(seed % 2));
    for (RecordParts& record : records) record.bin = bin;
    std::vector<Stack> stacks;
    build_tree(records, stacks);
    ASSERT_EQ(stacks.size(), 1u);
    ask_entries(stacks[0], records, false);
    const auto backend = make_reference_backend(model);
    const StopRules rules(model.config.vocab, {kEnd});
    Engine engine(*backend, rules, {.tokens_per_step = 64, .pages = 2000, .page_size = 4});
    bool given = false;
    double decoded = 0;
    int64_t answers = 0;
    std::map<std::pair<int32_t, int32_t>, WantedAnswer> wanted;
    engine.run([&] { return std::exchange(given, true) ? std::nullopt : std::optional(stacks[0]); },
               [&](Stack&& stack, std::vector<Answer>&& got) {
                 for (size_t i = 0; i < got.size(); ++i)
                   wanted[{stack.slots[i].record, stack.slots[i].question}] =
                       wanted_of(got[i], 2, kEnd, decoded, answers);
               });
    const auto prompts = make_training_prompts(stacks[0], rules, [&](const Slot& slot) {
      return &wanted.at({slot.record, slot.question});
    });
    double learned = 0;
    int64_t learned_answers = 0;
    for (const TrainingPrompt& prompt : prompts) {
      learned_answers += prompt.answers;
      const auto logits = dense.run(prompt.tokens, prompt.positions, mask_of(prompt));
      for (size_t t = 0; t < prompt.targets.size(); ++t)
        if (prompt.targets[t] >= 0) learned += log_probability(logits[t], prompt.targets[t]);
    }
    EXPECT_EQ(learned_answers, answers) << "seed " << seed;
    EXPECT_NEAR(learned, decoded, 1e-3 * std::abs(decoded)) << "seed " << seed;
    inner += answers - 9;
  }
  EXPECT_GT(inner, 20) << "hardly any answer listed entries";
}

TEST(Training, AListWhoseAnswerIsNotKnownHasNoEntriesToLearn) {
  auto records = test::make_random_records({.records = 1, .questions = 2, .max_tokens = 6}, 9);
  auto bin = std::make_shared<BinParts>(*records[0].bin);
  bin->questions[1].entries = entries_by_tokens(1);
  records[0].bin = bin;
  std::vector<Stack> stacks;
  build_tree(records, stacks);
  ask_entries(stacks[0], records, false);
  const StopRules rules(61, {});
  const WantedAnswer plain{Tokens{9, 8}, {}};
  EXPECT_EQ(make_training_prompts(stacks[0], rules,
                                  [&](const Slot& slot) { return slot.question == 0 ? &plain : nullptr; })
                .size(),
            1u);
  // Of two entries only the second is known, and of it only one field.
  WantedAnswer list{Tokens{20, 22}, std::vector<std::vector<WantedAnswer>>(2, std::vector<WantedAnswer>(2))};
  list.entries[1][0].tokens = Tokens{7};
  const auto prompts = make_training_prompts(
      stacks[0], rules, [&](const Slot& slot) { return slot.question == 1 ? &list : nullptr; });
  ASSERT_EQ(prompts.size(), 2u);
  EXPECT_EQ(prompts[1].answers, 1);
  Tokens alone = records[0].bin->instruction;
  append(alone, records[0].document);
  append(alone, records[0].bin->opening);
  append(alone, {11, 22, 12, 30, 32});
  EXPECT_EQ(prompts[1].tokens, alone) << "what a prompt of its own would have";
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

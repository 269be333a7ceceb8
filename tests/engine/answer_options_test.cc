// Of several options the likeliest as a whole is taken, whatever else runs beside it.
#include <gtest/gtest.h>

#include "core/engine/answer.h"
#include "cpu/cpu_backend.h"
#include "tests/engine/decode.h"
#include "tests/engine/delayed_backend.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

constexpr int32_t kRecords = 4, kQuestions = 3;

std::vector<Tokens> random_options(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Tokens> options;
  for (int i = 0; i < 5; ++i) {
    Tokens option{40};  // as the quote of a JSON text: most options start alike
    if (i == 4) option.clear();
    append(option, test::random_part(random, 4, 30));
    options.push_back(std::move(option));
  }
  return options;
}

std::vector<RecordParts> make_records(uint32_t seed, const std::vector<Tokens>& options) {
  auto records = test::make_random_records(
      {.records = kRecords, .questions = kQuestions, .max_tokens = 6, .own_questions = true}, seed);
  for (RecordParts& record : records)
    for (size_t q = 0; q < kQuestions; ++q) {
      QuestionParts& question = record.own_questions[q];
      if (q == 1) continue;  // a free answer between them
      question.allowed = std::make_shared<AnswerTrie>(options, -1, true);
    }
  return records;
}

/// The likeliest option of each question, and free answers as they are.
test::Answers decode_best(Backend& backend, std::vector<Stack> stacks, const EngineOptions& options,
                          EngineStats& stats) {
  const StopRules rules(backend.config().vocab, {3, 7});
  Engine engine(backend, rules, options);
  test::Answers best;
  size_t next = 0;
  engine.run([&] { return next < stacks.size() ? std::optional(std::move(stacks[next++])) : std::nullopt; },
             [&](Stack&& stack, std::vector<Answer>&& answers) {
               for (size_t i = 0, end = 0; i < answers.size(); i = end) {
                 end = options_end(stack.slots, i);
                 const Slot& slot = stack.slots[i];
                 best[{slot.record, slot.question}] = take_likeliest(
                     std::span(stack.slots).subspan(i, end - i), std::span(answers).subspan(i, end - i));
               }
             });
  stats = engine.stats();
  return best;
}

/// Every option decoded to its end, alone in its prompt.
test::Answers score_all(Backend& backend, const std::vector<RecordParts>& records,
                        const std::vector<Tokens>& options) {
  test::Answers best;
  for (const Tokens& option : options) {
    std::vector<RecordParts> alone = records;
    for (RecordParts& record : alone)
      for (QuestionParts& question : record.own_questions) {
        if (!question.allowed) continue;
        question.allowed = std::make_shared<AnswerTrie>(std::vector<Tokens>{option}, -1);
        question.max_tokens = question.list()->longest();
      }
    std::vector<Stack> stacks;
    build_separate(alone, stacks);
    for (auto& [key, answer] :
         test::decode(backend, std::move(stacks), {.tokens_per_step = 64, .pages = 4000})) {
      const auto [held, added] = best.try_emplace(key, answer);
      if (!added && answer.logprob > held->second.logprob) held->second = answer;
    }
  }
  return best;
}

TEST(AnswerOptions, TheLikeliestIsTaken) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const Model model = test::make_random_model({}, seed);
    const auto options = random_options(seed);
    const auto records = make_records(seed, options);
    const auto backend = make_reference_backend(model);
    const test::Answers wanted = score_all(*backend, records, options);
    ASSERT_EQ(wanted.size(), static_cast<size_t>(kRecords * kQuestions));

    for (auto build : {build_tree, build_separate, build_prefix}) {
      std::vector<Stack> stacks;
      build(records, stacks);
      for (const Stack& stack : stacks) check_stack(stack);
      EngineStats stats;
      test::expect_same(wanted, decode_best(*backend, stacks, {.tokens_per_step = 24, .pages = 4000}, stats),
                        "likeliest");
      EXPECT_EQ(stats.answers, kRecords * kQuestions);
      test::Delayed delayed(*backend, 2, test::When::at_finish);
      test::expect_same(wanted, decode_best(delayed, stacks, {.tokens_per_step = 9, .pages = 4000}, stats),
                        "likeliest, two steps at once");
    }
  }
}

TEST(AnswerOptions, OptionsThatCannotWinAreDropped) {
  const Model model = test::make_random_model({}, 3);
  const auto records = make_records(3, random_options(3));
  const auto backend = make_reference_backend(model);
  std::vector<Stack> stacks;
  build_tree(records, stacks);
  int64_t all = 0;
  for (const Slot& slot : stacks[0].slots)
    if (slot.allowed) all += slot.max_tokens;
  EngineStats stats;
  const auto best = decode_best(*backend, stacks, {.tokens_per_step = 64, .pages = 4000}, stats);
  int64_t free = 0;
  for (const auto& [key, answer] : best)
    if (key.second == 1) free += std::ssize(answer.tokens) + (answer.ending == Ending::end_of_text);
  EXPECT_LT(stats.answer_tokens - free, all);
}

}  // namespace
}  // namespace sheaf

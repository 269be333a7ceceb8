// Answers that think first: two rounds in the engine against prompts that are decoded one by one.
#include "core/task/thinking.h"

#include <gtest/gtest.h>

#include "cpu/cpu_backend.h"
#include "tests/engine/decode.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::Answers, test::decode, test::expect_same, test::make_random_model;

constexpr TokenId kEnd = 12;

std::shared_ptr<const Thinking> thinking(int32_t budget, TokenId end) {
  return std::make_shared<Thinking>(Thinking{budget, end, {end, 20, 21}, {5, end, 20, 21}});
}

std::vector<RecordParts> random_rows(uint32_t seed, const std::shared_ptr<const Thinking>& how) {
  auto rows =
      test::make_random_records({.records = 5, .questions = 3, .max_tokens = 6, .own_questions = true}, seed);
  for (RecordParts& row : rows)
    for (QuestionParts& question : row.own_questions) question.thinking = how;
  return rows;
}

template <class Build>
Answers run(const Model& model, const std::vector<RecordParts>& records, Build build, EngineOptions options,
            EngineStats* stats = nullptr, int interrupt_every = 0, Precision precision = Precision::f32) {
  std::vector<Stack> stacks;
  build(records, stacks);
  for (Stack& stack : stacks) think_first(stack);
  const auto backend = make_quick_backend(model, 1, precision);
  return decode(*backend, std::move(stacks), options, stats, interrupt_every);
}

/// The answer to one prompt, decoded with nothing beside it. `last`: a token that ends it.
Answer decode_alone(const Model& model, const Tokens& prompt, int32_t most, TokenId last) {
  Stack stack;
  Slot slot;
  slot.prompt = slot.answer = stack.add({Role::question, prompt, 0, {}, false});
  slot.max_tokens = most;
  slot.stop = Stop::text;
  slot.last = last;
  stack.slots.push_back(slot);
  const auto backend = make_quick_backend(model, 1);
  return decode(*backend, {std::move(stack)}, {.tokens_per_step = 64, .pages = 500}).begin()->second;
}

TEST(Thinking, EqualsAThoughtAndThenAnAnswer) {
  int cut = 0, ended = 0;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    const Model model = make_random_model({}, 300 + seed);
    // A token that the model often says, or the end of a text.
    const auto how = thinking(seed % 2 == 0 ? 4 : 12, seed % 4 < 2 ? kEnd : 7);
    const auto records = random_rows(seed, how);
    Answers wanted;
    for (const RecordParts& record : records)
      for (size_t q = 0; q < record.questions().size(); ++q) {
        Tokens prompt = record.bin->instruction;
        append(prompt, record.document);
        append(prompt, record.questions()[q].tokens);
        Tokens thought = decode_alone(model, prompt, how->budget, how->end).tokens;
        const bool whole = static_cast<int32_t>(thought.size()) < how->budget ||
                           (!thought.empty() && thought.back() == how->end);
        if (!thought.empty() && thought.back() == how->end) thought.pop_back();
        (whole ? ended : cut)++;
        append(thought, whole ? how->close : how->cut);
        append(prompt, thought);
        Answer answer = decode_alone(model, prompt, record.questions()[q].max_tokens, -1);
        const ThoughtAnswer parts = split_thought(*how, [&] {
          answer.tokens.insert(answer.tokens.begin(), thought.begin(), thought.end());
          return std::span<const TokenId>(answer.tokens);
        }());
        EXPECT_EQ(parts.cut, !whole);
        EXPECT_EQ(parts.thought.size() + (whole ? how->close : how->cut).size() + parts.answer.size(),
                  answer.tokens.size());
        wanted[{record.record, static_cast<int32_t>(q)}] = std::move(answer);
      }
    auto rows = records;
    for (RecordParts& row : rows)
      for (QuestionParts& question : row.own_questions) question.stop = Stop::text;
    EngineStats stats;
    expect_same(wanted, run(model, rows, build_tree, {.tokens_per_step = 64, .pages = 900}, &stats),
                fmt::format("seed {}", seed));
    EXPECT_EQ(stats.answers, 15);
    EXPECT_EQ(stats.first_answers, 15);
  }
  EXPECT_GT(cut, 10);
  EXPECT_GT(ended, 10);
}

TEST(Thinking, DoesNotDependOnPackingStepsOrInterruptions) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const Model model =
        make_random_model({.change = seed % 2 == 0 ? test::use_gpt_oss : nullptr}, 400 + seed);
    const auto records = random_rows(seed, thinking(9, seed % 3 == 0 ? 7 : kEnd));
    const float temperature = seed > 3 ? 1.0f : 0.0f;
    for (const Precision precision : {Precision::f32, Precision::int16, Precision::int8}) {
      const auto decoded = [&](auto build, EngineOptions options, int interrupt_every = 0) {
        options.temperature = temperature;
        return run(model, records, build, options, nullptr, interrupt_every, precision);
      };
      const Answers alone = decoded(build_separate, {.tokens_per_step = 64, .pages = 900});
      expect_same(alone, decoded(build_tree, {.tokens_per_step = 23, .pages = 400}), "tree");
      expect_same(alone, decoded(build_prefix, {.tokens_per_step = 64, .pages = 900}), "prefix");
      expect_same(alone, decoded(build_tree, {.tokens_per_step = 16, .pages = 400}, 3), "interrupted");
    }
  }
}

TEST(Thinking, EverySampleHasThoughtsOfItsOwn) {
  const Model model = make_random_model({}, 500);
  auto records = random_rows(1, thinking(8, kEnd));
  for (RecordParts& record : records) {
    record.samples = 3;
    std::vector<QuestionParts> each;
    for (const QuestionParts& question : record.own_questions) each.insert(each.end(), 3, question);
    record.own_questions = std::move(each);
  }
  const EngineOptions options{.tokens_per_step = 64, .pages = 900, .temperature = 1};
  const Answers tree = run(model, records, build_tree, options);
  expect_same(tree, run(model, records, build_separate, options), "samples");
  int differ = 0;
  for (int32_t record = 0; record < 5; ++record)
    differ += tree.at({record, 0}).tokens != tree.at({record, 1}).tokens;
  EXPECT_GT(differ, 3);
}

TEST(Thinking, AThoughtIsSplitFromItsAnswer) {
  const Thinking how{3, 9, {9, 1}, {4, 9, 1}};
  const auto split = [&](const Tokens& tokens) {
    const ThoughtAnswer parts = split_thought(how, tokens);
    return std::tuple(Tokens(parts.thought.begin(), parts.thought.end()),
                      Tokens(parts.answer.begin(), parts.answer.end()), parts.cut);
  };
  EXPECT_EQ(split({5, 6, 9, 1, 7, 8}), std::tuple(Tokens{5, 6}, Tokens{7, 8}, false));
  EXPECT_EQ(split({9, 1}), std::tuple(Tokens{}, Tokens{}, false));
  EXPECT_EQ(split({5, 6, 2, 4, 9, 1, 9, 1}), std::tuple(Tokens{5, 6, 2}, Tokens{9, 1}, true));
  EXPECT_EQ(split({7, 8}), std::tuple(Tokens{}, Tokens{7, 8}, false));
}

}  // namespace
}  // namespace sheaf

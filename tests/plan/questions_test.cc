// Prompts that hold at most so many questions.
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "core/plan/planner.h"
#include "tests/plan/count_task.h"

namespace sheaf {
namespace {

using test::CountTask, test::make_record;

/// What decides a slot's answer: the tokens that its prompt sees, in order.
std::map<std::pair<int32_t, int32_t>, Tokens> chains(const std::vector<Stack>& stacks) {
  std::map<std::pair<int32_t, int32_t>, Tokens> seen;
  for (const Stack& stack : stacks)
    for (const Slot& slot : stack.slots) {
      Tokens& chain = seen[{slot.record, slot.question}];
      EXPECT_TRUE(chain.empty()) << "asked twice";
      for (const Sight& sight : stack.segments[slot.prompt].sees)
        append(chain, stack.segments[sight.segment].tokens);
      append(chain, stack.segments[slot.prompt].tokens);
    }
  return seen;
}

std::vector<Stack> stacks_of(const Job::Method& method, int32_t samples = 1) {
  CountTask task;
  std::vector<Record> records;
  for (int i = 0; i < 11; ++i) records.push_back(make_record(i, "tea", std::to_string(3 + i % 4)));
  std::vector<ReadyRecord> ready = make_ready(task, records);
  for (size_t i = 0; i < ready.size(); ++i) {
    RecordParts& parts = ready[i].parts;
    if (i % 3 == 1) parts.known = {true, i % 2 == 0, false};
    parts.samples = samples;
    for (const QuestionParts& question : parts.bin->questions)
      for (int s = 0; s < samples; ++s) parts.own_questions.push_back(question);
    parts.known.resize(parts.own_questions.size());
  }
  Planner planner(make_builder(method), {1000, method.prompt_tokens, [](const Stack&) { return true; }});
  return planner.plan(std::move(ready)).stacks;
}

TEST(Planner, APromptHoldsAtMostSoManyQuestions) {
  for (const char* name : {"ippd", "parallel-prompting", "hpd"}) {
    for (const int32_t documents : {0, 1, 4}) {
      Job::Method method;
      method.name = name;
      method.documents = documents;
      const auto all = chains(stacks_of(method));
      EXPECT_EQ(all.size(), 33u - 4 - 2);
      for (const int32_t most : {1, 2, 3, 7, 1000}) {
        method.questions = most;
        const std::vector<Stack> stacks = stacks_of(method);
        EXPECT_EQ(chains(stacks), all) << name << ", " << documents << ", " << most;
        for (const Stack& stack : stacks) {
          EXPECT_LE(std::ssize(stack.slots), most);
          EXPECT_FALSE(stack.slots.empty());
          for (const Segment& segment : stack.segments)
            EXPECT_EQ(segment.shared, segment.role != Role::key && segment.role != Role::question)
                << "the prompts of a document share it";
        }
      }
    }
  }
}

TEST(Planner, PromptsWithFewQuestionsAreFilled) {
  Job::Method method;
  method.documents = 0;
  method.questions = 6;
  EXPECT_EQ(stacks_of(method).size(), 5u) << "27 questions";
}

TEST(Planner, TheSamplesOfAQuestionStayInOnePrompt) {
  Job::Method method;
  method.name = "ippd";
  method.questions = 2;
  for (const Stack& stack : stacks_of(method, 3)) {
    std::set<std::pair<int32_t, int32_t>> questions;
    for (const Slot& slot : stack.slots) questions.emplace(slot.record, slot.question / 3);
    EXPECT_LE(questions.size(), 2u);
  }
}

}  // namespace
}  // namespace sheaf

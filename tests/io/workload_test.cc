#include "io/files/workload.h"

#include <gtest/gtest.h>

#include "tests/errors.h"
#include "tests/files.h"

namespace sheaf {
namespace {

Workload read(const std::string& text, bool slots) {
  const TempFolder folder;
  return read_workload(folder.write("w.jsonl", text), slots);
}

const char* const kWorkload =
    R"({"name": "w", "instruction_ids": [1, 2]})"
    "\n"
    R"({"context_ids": [3], "questions": [{"ids": [4, 5], "answer_tokens": 6, "slots": [{"key_ids": [7], "value_tokens": 2}]}]})"
    "\n"
    R"({"context_ids": [8], "questions": [{"ids": [9], "answer_tokens": 1, "slots": [{"key_ids": [7], "value_tokens": 3}]}]})"
    "\n";

TEST(Workload, ContextsShareAnInstruction) {
  const Workload workload = read(kWorkload, false);
  EXPECT_EQ(workload.name, "w");
  EXPECT_EQ(workload.questions, 2);
  EXPECT_EQ(workload.vocab, 10);
  ASSERT_EQ(workload.bins.size(), 1u);
  ASSERT_EQ(workload.bins[0].size(), 2u);
  EXPECT_EQ(workload.bins[0][0].bin->instruction, (Tokens{1, 2}));
  EXPECT_EQ(workload.bins[0][0].own_questions[0].max_tokens, 6);
}

TEST(Workload, WithSlotsEveryQuestionIsADocument) {
  const Workload workload = read(kWorkload, true);
  ASSERT_EQ(workload.bins.size(), 2u);
  EXPECT_EQ(workload.bins[0][0].bin->instruction, (Tokens{1, 2, 3}));
  EXPECT_EQ(workload.bins[0][0].document, (Tokens{4, 5}));
  EXPECT_EQ(workload.bins[1][0].own_questions[0].max_tokens, 3);
}

void expect_work(const Work& work, const Work& wanted) {
  EXPECT_EQ(work.rows, wanted.rows);
  EXPECT_EQ(work.keys, wanted.keys);
  EXPECT_EQ(work.picks, wanted.picks);
}

TEST(Workload, LeastWorkEqualsTheHandCount) {
  // The instruction's rows see 1 and 2 keys, each context 3. The first question and the first five tokens of
  // its answer see 4 to 10, the second question 4; its only token is never computed.
  const int64_t instruction = 1 + 2, first = 3 + (4 + 5 + 6 + 7 + 8 + 9 + 10), second = 3 + 4;
  expect_work(least_work(read(kWorkload, false), {{0, 1}}),
              {2 + (1 + 2 + 5) + (1 + 1), instruction + first + second, 6 + 1});
  // Two layers that see four keys, and one that sees all.
  const int64_t near = instruction + (3 + 7 * 4) + (3 + 4);
  expect_work(least_work(read(kWorkload, false), {{0, 1}, {4, 2}}),
              {2 + (1 + 2 + 5) + (1 + 1), instruction + first + second + 2 * near, 6 + 1});
}

TEST(Workload, LeastWorkOfSlotsEqualsTheHandCount) {
  // The instruction counts once though each context starts with it. The first document sees 4 and 5 keys, its
  // key and first value token 6 and 7; the second document 4, its key and two value tokens 5 to 7.
  const int64_t instruction = 1 + 2, first = 3 + (4 + 5) + (6 + 7), second = 3 + 4 + (5 + 6 + 7);
  expect_work(least_work(read(kWorkload, true), {{0, 1}}),
              {2 + (1 + 2 + 2) + (1 + 1 + 3), instruction + first + second, 2 + 3});
}

TEST(Workload, AFileThatIsNoWorkloadIsRefused) {
  const std::string head = "{\"instruction_ids\": [1]}\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "has no questions"},
      {"[]\n", ":1: not a JSON object"},
      {"{}\n", "\"instruction_ids\" is missing"},
      {"{\"name\": 3, \"instruction_ids\": [1]}\n", "\"name\" is 3, a text is needed"},
      {head, "has no questions"},
      {"{\"instruction_ids\": [-1]}\n", "not a token id"},
      {head + "{\"context_ids\": [2]}\n", ":2: \"questions\" is missing"},
      {head + "{\"context_ids\": [2], \"questions\": []}\n",
       "\"questions\" must be a list with at least one entry"},
      {head + "{\"context_ids\": [2], \"questions\": [3]}\n", "\"ids\" is missing"},
      {head + "{\"context_ids\": [2], \"questions\": [{\"ids\": [1]}]}\n", "\"answer_tokens\" is missing"},
      {head + "{\"context_ids\": [2], \"questions\": [{\"ids\": [], \"answer_tokens\": 1}]}\n",
       "\"ids\" is empty"},
      {head + "{\"context_ids\": [2], \"questions\": [{\"ids\": [1], \"answer_tokens\": 0}]}\n",
       "\"answer_tokens\" must be a whole number from 1 to 100000"},
  };
  for (const auto& [text, reason] : cases) {
    const std::string error = error_of([&] { (void)read(text, false); });
    EXPECT_NE(error.find(reason), std::string::npos) << text << error;
  }
  const std::string bare =
      head + "{\"context_ids\": [2], \"questions\": [{\"ids\": [1], \"answer_tokens\": 1";
  EXPECT_NE(error_of([&] { (void)read(bare + "}]}\n", true); }).find("\"slots\" is missing"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              (void)read(bare + ", \"slots\": []}]}\n", true);
            }).find("must be a list with at least one entry"),
            std::string::npos);
}

}  // namespace
}  // namespace sheaf

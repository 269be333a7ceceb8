#include "io/workload.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/error.h"

namespace sheaf {
namespace {

std::string write(const std::string& text) {
  const std::string name = "sheaf-workload-" + std::to_string(getpid()) + ".jsonl";
  const std::string path = (std::filesystem::temp_directory_path() / name).string();
  std::ofstream(path) << text;
  return path;
}

const char* const kGood =
    R"({"name": "w", "instruction_ids": [1, 2]})"
    "\n"
    R"({"context_ids": [3], "questions": [{"ids": [4, 5], "answer_tokens": 6, "slots": [{"key_ids": [7], "value_tokens": 2}]}]})"
    "\n"
    R"({"context_ids": [8], "questions": [{"ids": [9], "answer_tokens": 1, "slots": [{"key_ids": [7], "value_tokens": 3}]}]})"
    "\n";

TEST(Workload, ContextsShareAnInstruction) {
  const Workload workload = read_workload(write(kGood), false);
  EXPECT_EQ(workload.name, "w");
  EXPECT_EQ(workload.questions, 2);
  EXPECT_EQ(workload.vocab, 10);
  ASSERT_EQ(workload.bins.size(), 1u);
  ASSERT_EQ(workload.bins[0].size(), 2u);
  EXPECT_EQ(workload.bins[0][0].bin->instruction, (Tokens{1, 2}));
  EXPECT_EQ(workload.bins[0][0].own_questions[0].max_tokens, 6);
}

TEST(Workload, WithSlotsEveryQuestionIsADocument) {
  const Workload workload = read_workload(write(kGood), true);
  ASSERT_EQ(workload.bins.size(), 2u);
  EXPECT_EQ(workload.bins[0][0].bin->instruction, (Tokens{1, 2, 3}));
  EXPECT_EQ(workload.bins[0][0].document, (Tokens{4, 5}));
  EXPECT_EQ(workload.bins[1][0].own_questions[0].max_tokens, 3);
}

TEST(Workload, RefusesWhatIsNone) {
  for (const char* text :
       {"", "[]\n", "{}\n", "{\"instruction_ids\": [1]}\n", "{\"instruction_ids\": [-1]}\n",
        "{\"instruction_ids\": [1]}\n{\"context_ids\": [2]}\n",
        "{\"instruction_ids\": [1]}\n{\"context_ids\": [2], \"questions\": [{\"ids\": [1]}]}\n",
        "{\"instruction_ids\": [1]}\n{\"context_ids\": [2], \"questions\": [3]}\n"})
    EXPECT_THROW((void)read_workload(write(text), false), Error) << text;
}

}  // namespace
}  // namespace sheaf

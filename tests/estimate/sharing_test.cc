#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/app/program.h"

// Methods word their prompts in their own ways: what a sweep says of one is what it says of it alone.

namespace sheaf {
namespace {

using nlohmann::json;
using test::run_sheaf;

json estimate_on_h200(const TempFolder& scratch, const std::string& arguments) {
  const auto ran = run_sheaf(scratch, "estimate " + arguments + " --hardware h200 --json");
  EXPECT_EQ(ran.exit_code, 0) << arguments << ": " << ran.err;
  return json::parse(ran.out, nullptr, false);
}

void expect_no_sharing(const TempFolder& scratch, const std::string& job,
                       const std::vector<std::string>& methods) {
  std::vector<json> alone;
  for (const std::string& method : methods)
    alone.push_back(estimate_on_h200(scratch, job + " --method " + method));
  for (size_t a = 0; a < methods.size(); ++a)
    for (size_t b = 0; b < methods.size(); ++b) {
      if (a == b) continue;
      const json both = estimate_on_h200(scratch, job + " --sweep method=" + methods[a] + "," + methods[b]);
      ASSERT_EQ(both["cases"].size(), 2u);
      for (const char* key : {"tokens_computed", "tokens_one_prompt_per_question", "answers", "usd"}) {
        EXPECT_EQ(both["cases"][0][key], alone[a][key])
            << key << " of " << methods[a] << " before " << methods[b];
        EXPECT_EQ(both["cases"][1][key], alone[b][key])
            << key << " of " << methods[b] << " after " << methods[a];
      }
    }
}

TEST(EstimateSweep, SharesNoRowsBetweenMethodsOfDocuments) {
  const TempFolder scratch;
  const std::string row =
      R"("docs":[{"text":"In Oss, by the bridge."},{"text":"Bread is baked daily in a large oven."}]})"
      "\n";
  const std::string corpus = scratch.write("c.jsonl", R"({"q":"Where is the mill?",)" + row);
  const std::string job = scratch.write(
      "job.yaml", "model: {path: qwen3-8b}\ninput: {path: " + corpus +
                      ", documents: docs, question: q}\ntask: {kind: ask}\nmethod: {name: ippd}\n"
                      "output: {path: out/none}\n");
  expect_no_sharing(scratch, job, {"pced", "ippd", "parallel-prompting", "prefix", "separate"});
}

TEST(EstimateSweep, WordsExamplesAsEachMethodDoes) {
  const TempFolder scratch;
  std::string examples;
  for (int i = 0; i < 4; ++i)
    examples +=
        R"({"id":")" + std::to_string(i) +
        R"(","context":"A red cup of tea.","questions":[{"id":"a","question":"Which?","answers":["red"]}]})"
        "\n";
  const std::string shots = scratch.write("shots.jsonl", examples);
  const std::string corpus =
      scratch.write("c.jsonl", R"({"context":"A blue cup.","questions":["Which colour?"]})"
                               "\n");
  const std::string job = scratch.write(
      "job.yaml",
      "model: {path: qwen3-8b}\ninput: {path: " + corpus +
          ", context: context, questions: questions, shots: 4, shots_from: " + shots +
          "}\ntask: {kind: ask, instruction: Answer.}\nmethod: {name: ippd}\noutput: {path: out/none}\n");
  expect_no_sharing(scratch, job, {"ippd", "parallel-prompting", "standard"});
  expect_no_sharing(scratch, job + " --document-tokens 50", {"ippd", "parallel-prompting"});
}

TEST(EstimateSweep, SharesNoRowsBetweenMethodsOfExtraction) {
  const TempFolder scratch;
  expect_no_sharing(scratch, "configs/demo.yaml --model qwen3-8b --document-tokens 100 --rows 16",
                    {"hpd", "standard"});
}

TEST(EstimateSweep, RefusesWhatARunWouldRefuse) {
  const TempFolder scratch;
  const auto says = [&](const std::string& arguments, const std::string& text) {
    const auto ran = run_sheaf(scratch, "estimate " + arguments + " --model qwen3-8b --document-tokens 50");
    EXPECT_EQ(ran.exit_code, 2) << arguments << ran.out;
    EXPECT_NE(ran.err.find(text), std::string::npos) << ran.err;
  };
  says("configs/squad.yaml --sweep method=ippd,pced", "input.documents");
  says("configs/hotpotqa.yaml --sweep method=ippd,pced --set input.too_long=split", "input.too_long=refuse");
  const std::string workload = scratch.write(
      "w.jsonl",
      R"({"instruction_ids":[1,2]})"
      "\n"
      R"({"context_ids":[3],"questions":[{"ids":[4],"answer_tokens":2,"slots":[{"key_ids":[7],"value_tokens":2}]}]})"
      "\n");
  const auto ran = run_sheaf(scratch, "estimate --model qwen3-8b --workload " + workload +
                                          " --sweep method=hpd,ippd --hardware h200");
  EXPECT_EQ(ran.exit_code, 2) << ran.out;
  EXPECT_NE(ran.err.find("two commands"), std::string::npos) << ran.err;
  for (const char* ignored : {"--answer-tokens 9", "--document-tokens 50", "--sample 1"}) {
    const auto pair = run_sheaf(
        scratch, "estimate --model qwen3-8b --hardware h200 --workload " + workload + " " + ignored);
    EXPECT_EQ(pair.exit_code, 2) << pair.out;
    EXPECT_NE(pair.err.find("--workload"), std::string::npos) << pair.err;
  }
}

}  // namespace
}  // namespace sheaf

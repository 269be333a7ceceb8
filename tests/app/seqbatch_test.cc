// Method seqbatch through the program: rows, resuming, planning, estimating, timing and verifying.
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran, test::read_json_lines, test::run_sheaf;

class SeqbatchRun : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    std::string contexts, products;
    for (int i = 0; i < 12; ++i) {
      json questions = json::array();
      for (int q = 0; q <= i % 3; ++q) questions.push_back({{"id", q}, {"question", "What?"}});
      contexts += json{{"id", i}, {"c", "Bridge " + std::to_string(i)}, {"qs", questions}}.dump() + "\n";
      products += json{{"id", i}, {"text", "Oak tea " + std::to_string(i)}}.dump() + "\n";
    }
    scratch_.write("contexts.jsonl", contexts);
    scratch_.write("products.jsonl", products);
    scratch_.write("schema.yaml", "categories: {Tea: [{name: Brand}, {name: Weight, type: number}]}\n");
  }

  std::string job(const std::string& input, const std::string& task) const {
    return scratch_.write("job.yaml", "model: {path: " + model_ + ", chat: chatml}\ninput: {path: " + input +
                                          "}\ntask: {" + task +
                                          "}\nmethod: {name: seqbatch, max_value_tokens: 4}\n"
                                          "engine: {device: cpu, threads: 1, window: 4}\noutput: {path: " +
                                          scratch_.path("out") + "}\n");
  }
  std::string ask() const {
    return job(scratch_.path("contexts.jsonl") + ", context: c, questions: qs, id: id", "kind: ask");
  }
  std::string extract() const {
    return job(scratch_.path("products.jsonl") + ", document: [text], id: id",
               "kind: extract, schema: " + scratch_.path("schema.yaml"));
  }
  std::vector<json> rows(const std::string& folder = "out") const {
    return read_json_lines(read_text(scratch_.path(folder) + "/rows-00000.jsonl"));
  }

  TempFolder scratch_;
  std::string model_;
};

TEST_F(SeqbatchRun, EveryQuestionHasAnAnswerOrANullWithANote) {
  const Ran ran = run_sheaf(scratch_, "run -q " + ask());
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto found = rows();
  ASSERT_EQ(found.size(), 12u);
  int noted = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i]["answers"].size(), i % 3 + 1);
    for (const json& answer : found[i]["answers"]) noted += answer.contains("note");
  }
  EXPECT_GT(noted, 0) << "a model of random weights writes no list";
  const json report = json::parse(read_text(scratch_.path("out") + "/report.json"));
  EXPECT_EQ(report["questions"]["asked"], 24);
}

TEST_F(SeqbatchRun, EveryAttributeIsInTheRowsAndInParquet) {
  const std::string run = "run -q " + extract() + " --set output.raw=true";
  ASSERT_EQ(run_sheaf(scratch_, run).exit_code, 0);
  for (const json& row : rows()) {
    EXPECT_EQ(row["values"].size(), 2u);
    EXPECT_TRUE(row["raw"].is_string()) << "one text holds both";
  }
  const Ran parquet = run_sheaf(scratch_, run +
                                              " --set output.format=parquet --set output.logprobs=true"
                                              " --set output.path=" +
                                              scratch_.path("columns"));
  EXPECT_EQ(parquet.exit_code, 0) << parquet.err;
}

TEST_F(SeqbatchRun, IsVerifiedAgainstSeparatePromptsNotItself) {
  for (const std::string& file : {ask(), extract()}) {
    const Ran ran = run_sheaf(scratch_, "verify --json " + file);
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    const json verified = json::parse(ran.out);
    EXPECT_EQ(verified["records"], 12);
    EXPECT_EQ(verified["answers"], 24);
    EXPECT_LT(verified["exact_match"], 1.0) << "a random model does not write the same both ways";
    EXPECT_FALSE(verified["differences"].empty());
  }
}

TEST_F(SeqbatchRun, ADocumentThatIsSplitIsAskedPartByPart) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "word " + std::to_string(i) + " ";
  scratch_.write("long.jsonl",
                 json{{"id", 1}, {"c", text}, {"qs", {"One?", "Two?", "Three?"}}}.dump() + "\n");
  const Ran ran = run_sheaf(
      scratch_, "run -q " +
                    job(scratch_.path("long.jsonl") + ", context: c, questions: qs, id: id, too_long: split",
                        "kind: ask") +
                    " --set engine.kv_memory_gb=0.001");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(rows()[0]["answers"].size(), 3u);
}

TEST_F(SeqbatchRun, PlanEstimateAndBenchCountIt) {
  const Ran plan = run_sheaf(scratch_, "plan --json " + ask());
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_EQ(json::parse(plan.out)["answers"], 12) << "one list a record";
  const Ran estimate = run_sheaf(scratch_, "estimate --json --hardware h200 " + ask());
  EXPECT_EQ(estimate.exit_code, 0) << estimate.err;
  const Ran made_up = run_sheaf(scratch_,
                                "estimate --json --model smollm2-135m --method seqbatch --hardware h200 "
                                "--document-tokens 100 --questions 5 --rows 40");
  ASSERT_EQ(made_up.exit_code, 0) << made_up.err;
  EXPECT_EQ(json::parse(made_up.out)["answers"], 40);
  const std::string workload =
      scratch_.write("w.jsonl",
                     "{\"instruction_ids\": [1, 2]}\n"
                     "{\"context_ids\": [3, 4], \"questions\": [{\"ids\": [5], \"answer_tokens\": 2}, "
                     "{\"ids\": [6], \"answer_tokens\": 3}]}\n");
  const Ran bench =
      run_sheaf(scratch_, "bench " + workload + " --device cpu --model " + model_ + " --method seqbatch");
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
}

}  // namespace
}  // namespace sheaf

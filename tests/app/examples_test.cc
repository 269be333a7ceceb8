// Examples through the program: packed and separate prompts agree, plans show them, a changed file is
// noticed.
#include <gtest/gtest.h>

#include "io/base/table_file.h"
#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran, test::run_sheaf;

class JobExamples : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    scratch_.write(
        "schema.yaml",
        "categories: {Tea: [{name: Brand}, {name: Form, type: enum, options: [bags, loose]}], Cup: "
        "[{name: Size}]}\n");
    scratch_.write("products.jsonl",
                   R"({"id": 1, "category": "Tea", "document": "Oak tea", "gold": {"Brand": "Oak"}}
{"id": 2, "category": "Tea", "document": "Elm bags", "gold": {"Brand": "Elm", "Form": "bags"}}
{"id": 3, "category": "Cup", "document": "small cup", "gold": {"Size": "small"}}
{"id": 4, "category": "Tea", "document": "Fir tea, loose", "gold": {}}
)");
    // One of them is asked about.
    scratch_.write(
        "gold.jsonl",
        R"({"id": 7, "category": "Tea", "document": "Elm bags", "gold": {"Brand": "Elm", "Form": "bags"}}
{"id": 8, "category": "Tea", "document": "Ash tea", "gold": {"Brand": "Ash", "Form": null}}
)");
    job_ = scratch_.write(
        "job.yaml",
        "model: {path: " + model_ + ", chat: chatml}\ninput: {path: " + scratch_.path("products.jsonl") +
            ", id: id, category: category, document: document}\ntask: {kind: extract, schema: " +
            scratch_.path("schema.yaml") + ", examples: " + scratch_.path("gold.jsonl") +
            "}\nmethod: {name: hpd, documents: 2, max_value_tokens: 6}\nengine: {device: cpu, threads: "
            "1}\noutput: {path: " +
            scratch_.path("out") + ", logprobs: true}\n");
  }

  Ran run(const std::string& arguments) const { return run_sheaf(scratch_, arguments); }
  /// The rows of the job with these settings; log-probabilities are part of them.
  std::string rows(const std::string& settings) const {
    const Ran ran = run("run " + job_ + " -q --restart " + settings);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return read_text(scratch_.path("out/rows-00000.jsonl"));
  }

  TempFolder scratch_;
  std::string model_, job_;
};

TEST_F(JobExamples, GoldThatItsTypeDoesNotHoldIsTold) {
  scratch_.write(
      "gold.jsonl",
      R"({"id": 7, "category": "Tea", "document": "Elm", "gold": {"Brand": "Elm", "Form": "powder"}})"
      "\n");
  for (const char* command : {"plan ", "run "}) {
    const Ran ran = run(command + job_);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_NE(
        ran.err.find("1 gold value that the type of its attribute does not hold, left out of the examples: "
                     "\"powder\" of \"Form\""),
        std::string::npos)
        << ran.err;
  }
}

TEST_F(JobExamples, PackedAndSeparatePromptsAgreeToTheBit) {
  const std::string packed = rows("");
  EXPECT_EQ(test::read_json_lines(packed).size(), 4u);
  EXPECT_EQ(packed, rows("--set method.name=separate"));
  EXPECT_EQ(packed, rows("--set method.documents=1 --set engine.window=1"));
  const std::string without = rows("--set task.examples=null");
  EXPECT_NE(packed, without) << "the examples changed nothing";
  // A category without examples is as it was.
  EXPECT_EQ(test::read_json_lines(packed)[2], test::read_json_lines(without)[2]);
  const Ran ran = run("verify " + job_ + " --json");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["exact_match"], 1.0);
}

TEST_F(JobExamples, PlanShowsThem) {
  const Ran ran = run("plan " + job_);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("examples 2 in all; with the instruction, at most"), std::string::npos) << ran.out;
  EXPECT_NE(ran.err.find("has no examples for 1 of 2 categories: Cup"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.out.find('\t'), std::string::npos) << ran.out;
  const json plan = json::parse(run("plan " + job_ + " --json").out);
  EXPECT_EQ(plan["examples"], json({{"Tea", 2}}));
  EXPECT_EQ(plan["bins"]["Tea"]["records"], 2);
  json own;  // the record that is an example itself
  for (const auto& [name, bin] : plan["bins"].items())
    if (name.starts_with("Tea, without example ")) own = bin;
  EXPECT_EQ(own["records"], 1);
  EXPECT_LT(own["head_tokens"], plan["bins"]["Tea"]["head_tokens"]);
}

TEST_F(JobExamples, TheirTokensAreComputedOnce) {
  const auto computed = [&](const std::string& more) {
    return json::parse(run("plan " + job_ + " --json " + more).out)["tokens_computed"].get<int64_t>();
  };
  const json plan = json::parse(run("plan " + job_ + " --json").out);
  int64_t heads = 0, bare = 0;
  for (const auto& [name, bin] : plan["bins"].items()) heads += bin["head_tokens"].get<int64_t>();
  const std::string without = "--set task.examples=null";
  const json before = json::parse(run("plan " + job_ + " --json " + without).out);
  for (const auto& [name, bin] : before["bins"].items()) bare += bin["head_tokens"].get<int64_t>();
  // One prompt per record: no head is computed a second time.
  const std::string apart = " --set method.documents=1";
  EXPECT_EQ(computed(apart) - heads, computed(apart + " " + without) - bare);
}

TEST_F(JobExamples, AChangedFileCannotBeResumed) {
  rows("");
  EXPECT_EQ(run("run " + job_ + " -q").exit_code, 0) << "an unchanged one can";
  scratch_.write("gold.jsonl", R"({"category": "Tea", "document": "Ash tea", "gold": {"Brand": "Oak"}})");
  const Ran ran = run("run " + job_ + " -q");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("examples"), std::string::npos) << ran.err;
}

TEST_F(JobExamples, TrainDataHoldsThem) {
  const Ran ran = run("train-data " + job_ + " " + scratch_.path("data.parquet"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  TableFile file(scratch_.path("data.parquet"));
  file.select({"tokens", "records"});
  const auto batch = file.next();
  ASSERT_TRUE(batch && batch->error.empty());
  int prompts = 0;
  for (const json& prompt : batch->cells) {
    std::string text;  // the model has one token a byte
    for (const json& token : prompt["tokens"])
      if (token.get<int>() < 256) text += static_cast<char>(token.get<int>());
    const bool tea = prompt["records"] != json({"3"}), elm = prompt["records"] == json({"2"});
    EXPECT_EQ(text.find("Product:\nAsh tea") != std::string::npos, tea) << text;
    // A record is not shown its own answer.
    EXPECT_EQ(text.find("\"bags\"\n}") != std::string::npos, tea && !elm) << text;
    ++prompts;
  }
  EXPECT_EQ(prompts, 3);
}

TEST_F(JobExamples, TooLongOnesAreRefused) {
  const Ran ran = run("run " + job_ + " -q --set method.prompt_tokens=300");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("raise method.prompt_tokens"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace sheaf

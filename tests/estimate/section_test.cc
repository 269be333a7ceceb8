#include <gtest/gtest.h>

#include "core/base/error.h"
#include "io/files/estimate_section.h"
#include "io/files/job_file.h"
#include "io/files/job_fingerprint.h"
#include "tests/app/program.h"
#include "tests/files.h"

namespace sheaf {
namespace {

class EstimateSection : public testing::Test {
 protected:
  std::string job(const std::string& more) {
    folder_.write("m.gguf", "weights");
    folder_.write("c.jsonl", "{}\n");
    return folder_.write("job.yaml", "model: {path: " + folder_.path("m.gguf") +
                                         "}\ninput: {path: " + folder_.path("c.jsonl") +
                                         ", context: text, questions: q}\ntask: {kind: ask}\n"
                                         "method: {name: ippd}\noutput: {path: out/none}\n" +
                                         more);
  }
  std::string refusal(const std::string& more) {
    try {
      read_job(job(more), {});
    } catch (const Error& error) {
      return error.what();
    }
    return "was taken";
  }
  static bool says(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  TempFolder folder_;
};

TEST_F(EstimateSection, IsReadStrictlyByEveryCommand) {
  EXPECT_EQ(
      refusal("estimate: {sample: 100, answer_tokens: 4, tokens_per_byte: 0.3, hardware: [l40s, h100], "
              "within: 2h, statistics: {document_tokens: 100}, sweep: {documents: [1, 2], method: ippd}}\n"),
      "was taken");
  EXPECT_EQ(refusal("estimate: {rows: 9, statistics: {document_tokens: 9, documents_per_row: 2}, "
                    "sweep: {rows_per_step: [64]}}\n"),
            "was taken")
      << "old names";
  EXPECT_TRUE(says(refusal("estimate: {sampel: 100}\n"), "did you mean \"sample\""));
  EXPECT_TRUE(says(refusal("estimate: {sweep: {documnets: [1]}}\n"), "did you mean \"documents\""));
  EXPECT_TRUE(says(refusal("estimate: {statistics: {document: 10}}\n"), "unknown key \"document\""));
  EXPECT_TRUE(says(refusal("estimate: {sample: 0}\n"), "job.yaml:6"));
  EXPECT_TRUE(says(refusal("estimate: {answer_tokens: 1e8}\n"), "job.yaml:6"));
  EXPECT_TRUE(says(refusal("estimate: {statistics: {document_tokens: nan}}\n"), "must be a number"));
  EXPECT_TRUE(says(refusal("estimate: {within: soon}\n"), "2h, 90m or 30s"));
  EXPECT_TRUE(says(refusal("estimate: {sweep: {documents: []}}\n"), "empty list"));
}

TEST_F(EstimateSection, IsNotPartOfTheFingerprint) {
  const auto print = [&](const std::string& more) {
    return job_fingerprint(read_job(job(more), {}), false, Shard{});
  };
  EXPECT_EQ(print(""), print("estimate: {sample: 100, sweep: {documents: [1, 2]}}\n"));
}

TEST_F(EstimateSection, TheCommandLineWins) {
  const EstimateWishes section = read_job_estimate(
      read_job_yaml(job("estimate: {sample: 100, answer_tokens: 4, hardware: h100, sweep: {method: "
                        "[ippd, prefix], documents: 2}}\n")),
      {"estimate.answer_tokens=6"});
  EXPECT_EQ(section.statistics.answer, 6);
  EstimateWishes wishes;
  wishes.sample = 50;
  wishes.take_missing(section, {"method"});
  EXPECT_EQ(wishes.sample, 50);
  EXPECT_EQ(wishes.statistics.answer, 6);
  EXPECT_EQ(wishes.hardware, "h100");
  ASSERT_EQ(wishes.sweep.size(), 1u);  // --method was given
  EXPECT_EQ(wishes.sweep[0].key, "documents");
  EXPECT_EQ(wishes.sweep[0].values, std::vector<std::string>{"2"});
  EstimateWishes own;
  own.sweep.push_back(parse_sweep("devices=1,2"));
  own.take_missing(section, {});
  ASSERT_EQ(own.sweep.size(), 1u);
  EXPECT_EQ(own.sweep[0].key, "devices");
}

TEST_F(EstimateSection, GivesTheCommandItsOptions) {
  const TempFolder scratch;
  const std::string file =
      job("estimate: {model: qwen3-8b, rows: 5000, statistics: {document_tokens: 100, questions: 3}, "
          "answer_tokens: 4, "
          "sweep: {hardware: [l4, h100], documents: [1, 8]}}\n");
  const auto ran = test::run_sheaf(scratch, "estimate " + file + " --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto result = nlohmann::json::parse(ran.out);
  ASSERT_EQ(result["cases"].size(), 4u);
  EXPECT_EQ(result["cases"][0]["answers"], 15000);
  EXPECT_TRUE(result["cases"][3]["hardware"] == "h100");
  EXPECT_EQ(result["cases"][3]["documents"], 8);
  const auto one =
      test::run_sheaf(scratch, "estimate " + file + " --hardware h200 --documents 2 --rows 10 --json");
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(nlohmann::json::parse(one.out)["rows"], 10);
}

}  // namespace
}  // namespace sheaf

// Method pced through the program: a dataset, a corpus of one's own, resumed, planned, verified.
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran, test::read_json_lines, test::run_sheaf;

class PcedRun : public testing::Test {
 protected:
  void SetUp() override {
    const char* towns[] = {"Oss", "Arn", "Leith", "Dale"};
    std::string lines;
    for (int i = 0; i < 40; ++i) {
      const std::string bridge = "Bridge " + std::to_string(i % 7), town = towns[i % 4];
      json context = json::array();
      context.push_back({bridge, {"It is in " + town + ".", " It is old."}});
      context.push_back({town, {town + " is a town."}});
      for (int k = 0; k < i % 3; ++k) context.push_back({towns[k], {"Nothing of it is known."}});
      lines += json{{"_id", "h" + std::to_string(i)},
                    {"question", "Where is bridge " + std::to_string(i % 7) + "?"},
                    {"answer", town},
                    {"context", context}}
                   .dump() +
               "\n";
      if (i == 9)
        lines += R"({"_id": "none", "question": "Where?", "answer": "", "context": []})"
                 "\n";
    }
    scratch_.write("hotpot.jsonl", lines);
    model_ = test::make_tiny_model(scratch_);
  }

  /// Rows have log-probabilities, which tell apart what a tiny model answers alike.
  std::string job(const std::string& input, const std::string& method) const {
    return scratch_.write("job.yaml", "model: {path: " + model_ + ", chat: chatml}\ninput: {path: " + input +
                                          "}\ntask: {kind: ask}\nmethod: {" + method +
                                          ", max_value_tokens: 5}\n"
                                          "engine: {device: cpu, threads: 1, window: 8}\noutput: {path: " +
                                          scratch_.path("out") + ", logprobs: true}\n");
  }
  std::string hotpot() const { return scratch_.path("hotpot.jsonl") + ", format: hotpotqa"; }
  std::string to(const std::string& name) const { return " -q --set output.path=" + scratch_.path(name); }
  std::string rows(const std::string& folder) const {
    return read_text(scratch_.path(folder) + "/rows-00000.jsonl");
  }

  TempFolder scratch_;
  std::string model_;
};

TEST_F(PcedRun, DocumentsAreDecodedTogether) {
  const std::string ape = job(hotpot(), "name: ape");
  const Ran ran = run_sheaf(scratch_, "run " + ape + to("ape"));
  EXPECT_EQ(ran.exit_code, 1) << ran.err;  // one record has no documents
  EXPECT_EQ(read_json_lines(rows("ape")).size(), 40u);
  const Ran verified = run_sheaf(scratch_, "verify " + ape);
  EXPECT_NE(verified.out.find("1.0000"), std::string::npos) << verified.out;
  ASSERT_EQ(run_sheaf(scratch_, "run " + job(hotpot(), "name: standard") + to("all")).exit_code, 1);
  EXPECT_NE(rows("ape"), rows("all")) << "documents should not see each other";
}

TEST_F(PcedRun, ADatasetRunResumesWhereItStopped) {
  const std::string run = "run " + job(hotpot(), "name: pced");
  const Ran whole = run_sheaf(scratch_, run + to("whole"));
  EXPECT_EQ(whole.exit_code, 1) << whole.err;
  const auto answers = read_json_lines(rows("whole"));
  ASSERT_EQ(answers.size(), 40u);
  EXPECT_EQ(answers[0]["id"], "h0");
  EXPECT_EQ(answers[0]["answers"].size(), 1u);
  const auto rejects = read_json_lines(read_text(scratch_.path("whole") + "/rejects.jsonl"));
  ASSERT_EQ(rejects.size(), 1u);
  EXPECT_EQ(rejects[0]["reason"], "the record has no documents");

  // Stopped by too many rejects after the first windows, and then allowed to go on.
  const Ran stopped = run_sheaf(scratch_, run + to("parts") + " --max-rejects 0");
  EXPECT_EQ(stopped.exit_code, 2) << stopped.err;
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("parts/rows-00000.jsonl")));
  EXPECT_EQ(run_sheaf(scratch_, run + to("parts")).exit_code, 1);
  EXPECT_EQ(rows("parts"), rows("whole"));

  // Steps, windows and sharing change nothing.
  EXPECT_EQ(run_sheaf(scratch_, run + to("steps") + " --set engine.tokens_per_step=3 --set engine.window=40")
                .exit_code,
            1);
  EXPECT_EQ(rows("steps"), rows("whole"));
  const Ran verified = run_sheaf(scratch_, "verify " + scratch_.path("job.yaml") + " --json --limit 9");
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_EQ(json::parse(verified.out)["exact_match"], 1.0);
}

TEST_F(PcedRun, EverySettingChangesTheAnswers) {
  const std::string run = "run " + job(hotpot(), "name: pced");
  EXPECT_EQ(run_sheaf(scratch_, run + to("usual")).exit_code, 1);
  for (const std::string set : {"method.contrast=1.5", "method.prior_weight=0", "method.aggregate=product",
                                "method.aggregate=mixture", "input.top_documents=1"}) {
    EXPECT_EQ(run_sheaf(scratch_, run + to(set) + " --set " + set).exit_code, 1) << set;
    EXPECT_NE(rows(set), rows("usual")) << set;
  }
  EXPECT_EQ(run_sheaf(scratch_, run + to("same") + " --set method.contrast=dynamic").exit_code, 1);
  EXPECT_EQ(rows("same"), rows("usual"));
}

TEST_F(PcedRun, OtherMethodsReadTheDocumentsAsOne) {
  const std::string run = "run " + job(hotpot(), "name: standard");
  EXPECT_EQ(run_sheaf(scratch_, run + to("all")).exit_code, 1);
  EXPECT_EQ(run_sheaf(scratch_, run + to("joined") + " --set input.context=context").exit_code, 1);
  EXPECT_EQ(rows("all"), rows("joined"));
  EXPECT_EQ(run_sheaf(scratch_, run + to("single") + " --set input.top_documents=1").exit_code, 1);
  EXPECT_NE(rows("single"), rows("all"));
  // One document, no contrast and no prior: the plain prompt.
  const std::string chain = "run " + job(hotpot(), "name: pced, contrast: 0, prior_weight: 0");
  const std::string words = " --set input.top_documents=1 --set task.instruction=Tell";
  EXPECT_EQ(run_sheaf(scratch_, chain + to("chain") + words).exit_code, 1);
  EXPECT_EQ(run_sheaf(scratch_, "run " + job(hotpot(), "name: standard") + to("plain") + words).exit_code, 1);
  EXPECT_EQ(rows("chain"), rows("plain"));
}

TEST_F(PcedRun, ACorpusMayCarryItsOwnRelevanceScores) {
  std::string lines;
  for (int i = 0; i < 6; ++i)
    lines += json{{"q", "Where?"},
                  {"docs", {{{"text", "In Oss."}, {"title", "Bridge"}}, {{"text", "Bread."}}}},
                  {"s", i == 2 ? json{0.5} : json{0.9, 0.1}}}
                 .dump() +
             "\n";
  const std::string input = scratch_.write("own.jsonl", lines) + ", documents: docs, scores: s, question: q";
  const Ran ran = run_sheaf(scratch_, "run -q " + job(input, "name: pced"));
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_EQ(read_json_lines(rows("out")).size(), 5u);
  const auto rejects = read_json_lines(read_text(scratch_.path("out") + "/rejects.jsonl"));
  ASSERT_EQ(rejects.size(), 1u);
  EXPECT_EQ(rejects[0]["reason"], "column \"s\" has 1 score for 2 documents");
  const Ran plan = run_sheaf(scratch_, "plan " + scratch_.path("job.yaml") + " --json --answer-tokens 4");
  // Documents and instruction are computed once for all rows.
  const json planned = json::parse(plan.out);
  EXPECT_GT(planned["tokens_one_prompt_per_question"], 2 * planned["tokens_computed"].get<int64_t>());
  const Ran estimate = run_sheaf(
      scratch_, "estimate " + scratch_.path("job.yaml") + " --hardware h200 --json --answer-tokens 4");
  const json estimated = json::parse(estimate.out);
  EXPECT_EQ(estimated["tokens_computed"], planned["tokens_computed"]) << estimate.err;
  EXPECT_EQ(estimated["tokens_one_prompt_per_question"], planned["tokens_one_prompt_per_question"]);
}

TEST_F(PcedRun, MistakesInTheJobAreNamed) {
  const auto error = [&](const std::string& input, const std::string& method) {
    const Ran ran = run_sheaf(scratch_, "run -q " + job(input, method));
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    return ran.err;
  };
  const std::string own = scratch_.path("hotpot.jsonl") + ", question: question";
  EXPECT_NE(error(own + ", context: answer", "name: pced")
                .find("set input.documents to the column with their list"),
            std::string::npos);
  EXPECT_NE(error(own + ", context: a, documents: b", "name: pced").find("are both given"),
            std::string::npos);
  EXPECT_NE(
      error(own + ", context: a, top_documents: 1", "name: ippd").find("works only with input.documents"),
      std::string::npos);
  EXPECT_NE(error(hotpot() + ", too_long: truncate", "name: pced").find("input.too_long"), std::string::npos);
  EXPECT_NE(error(hotpot(), "name: ippd, contrast: 1").find("works only with method.name pced"),
            std::string::npos);
  EXPECT_NE(error(hotpot(), "name: pced, contrast: much").find("method.contrast"), std::string::npos);
  EXPECT_NE(error(hotpot(), "name: pced, aggregate: sum").find("method.aggregate"), std::string::npos);
}

}  // namespace
}  // namespace sheaf

// Method pced through the program: a dataset, a corpus of one's own, resumed, planned, verified.
#include <gtest/gtest.h>
#include <map>

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

TEST_F(PcedRun, DocumentsAreWeighedByATemperatureAndAScale) {
  const std::string settings = "name: ape, document_temperature: 0.5, document_scale: 0.7";
  run_sheaf(scratch_, "run " + job(hotpot(), "name: ape") + to("plain"));
  run_sheaf(scratch_,
            "run " + job(hotpot(), "name: ape, document_temperature: 1, document_scale: 1") + to("off"));
  EXPECT_EQ(rows("plain"), rows("off"));
  const std::string weighed = job(hotpot(), settings);
  run_sheaf(scratch_, "run " + weighed + to("weighed"));
  EXPECT_EQ(read_json_lines(rows("weighed")).size(), 40u);
  EXPECT_NE(rows("plain"), rows("weighed"));
  for (const std::string change : {"", " --set model.dtype=int8", " --set method.speculate=lookup"}) {
    const Ran verified = run_sheaf(scratch_, "verify " + weighed + change);
    EXPECT_NE(verified.out.find("1.0000"), std::string::npos) << verified.out << verified.err;
  }
  // Their keys decide answers: a run with others is another run, and its answers are not taken.
  const Ran other = run_sheaf(scratch_, "run " + job(hotpot(), "name: ape") + to("weighed"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("method.document_temperature"), std::string::npos) << other.err;
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

  // Stopped by too many rejects after the first windows, and then allowed to continue.
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

TEST_F(PcedRun, RowsSayWhichDocumentsSpoke) {
  const std::string run = "run " + job(hotpot(), "name: pced");
  ASSERT_EQ(run_sheaf(scratch_, run + to("plain")).exit_code, 1);
  const Ran ran = run_sheaf(scratch_, run + to("traced") + " --set output.trace=true --set output.raw=true");
  ASSERT_EQ(ran.exit_code, 1) << ran.err;
  const auto plain = read_json_lines(rows("plain")), traced = read_json_lines(rows("traced"));
  ASSERT_EQ(traced.size(), plain.size());
  size_t spoken = 0;
  for (size_t i = 0; i < traced.size(); ++i) {
    const json& answer = traced[i]["answers"][0];
    EXPECT_EQ(answer["answer"], plain[i]["answers"][0]["answer"]);
    EXPECT_EQ(answer["logprob"], plain[i]["answers"][0]["logprob"]);
    std::string text;
    std::map<int64_t, int64_t> tokens;
    for (const json& piece : answer["trace"]) {
      text += piece["text"].get<std::string>();
      tokens[piece["document"]] += piece["tokens"].get<int64_t>();
      EXPECT_TRUE(piece["document"] >= 1 && piece["document"] <= 4) << piece;
    }
    const auto raw = answer["raw"].get<std::string>();
    EXPECT_EQ(text, raw.substr(0, raw.find_last_not_of("\r\n ") + 1));
    EXPECT_EQ(answer["citations"].size(), tokens.size());
    int64_t most = INT64_MAX;
    for (const json& cited : answer["citations"]) {
      EXPECT_EQ(cited["tokens"], tokens[cited["document"]]);
      EXPECT_LE(cited["tokens"], most);
      most = cited["tokens"];
    }
    spoken += tokens.size();
  }
  EXPECT_GT(spoken, traced.size() / 2);
  // Of answers that an earlier run keeps too.
  const Ran again =
      run_sheaf(scratch_, run + to("again") + " --set output.trace=true --set output.raw=true --reuse " +
                              scratch_.path("plain"));
  EXPECT_EQ(again.exit_code, 1) << again.err;
  EXPECT_EQ(rows("again"), rows("traced"));
  // Of one document all is its own.
  ASSERT_EQ(
      run_sheaf(scratch_, run + to("one") + " --set output.trace=true --set input.top_documents=1").exit_code,
      1);
  for (const json& row : read_json_lines(rows("one"))) EXPECT_LE(row["answers"][0]["citations"].size(), 1u);
}

TEST_F(PcedRun, QuestionsAreLookedUpInACorpus) {
  std::string passages, questions;
  for (int i = 0; i < 30; ++i) {
    passages += json{{"id", "p" + std::to_string(i)},
                     {"title", "Bridge " + std::to_string(i)},
                     {"text", "It is in town" + std::to_string(i % 7) + "."}}
                    .dump() +
                "\n";
    questions += json{{"id", i}, {"q", "Where is bridge " + std::to_string(i) + "?"}}.dump() + "\n";
  }
  questions += "{\"id\": 99, \"q\": \"???\"}\n";
  scratch_.write("passages.jsonl", passages);
  const std::string input = scratch_.write("questions.jsonl", questions) +
                            ", id: id, question: q, corpus: " + scratch_.path("passages.jsonl") +
                            ", top_documents: 3";
  for (const std::string method : {"pced", "prefix", "ape", "standard"}) {
    const Ran ran = run_sheaf(scratch_, "run " + job(input, "name: " + method) + to(method));
    EXPECT_EQ(ran.exit_code, 1) << ran.err;
    EXPECT_EQ(read_json_lines(rows(method)).size(), 30u);
    EXPECT_TRUE(std::filesystem::exists(scratch_.path("passages.jsonl.bm25")));
  }
  const std::string pced = "run " + job(input, "name: pced");
  const Ran traced =
      run_sheaf(scratch_, pced + to("traced") + " --set output.trace=true --set method.prior_weight=100");
  EXPECT_EQ(traced.exit_code, 1) << traced.err;
  for (const json& row : read_json_lines(rows("traced")))
    for (const json& cited : row["citations"])
      EXPECT_EQ(cited["document"], "p" + std::to_string(row["id"].get<int>())) << "the prior decides alone";
  EXPECT_EQ(
      json::parse(run_sheaf(scratch_, "verify " + scratch_.path("job.yaml") + " --json").out)["exact_match"],
      1.0);
  // A run resumes with its passages, not with others.
  EXPECT_EQ(run_sheaf(scratch_, pced + to("pced")).exit_code, 1);
  scratch_.write("passages.jsonl", passages + "{\"text\": \"New.\"}\n");
  const Ran changed = run_sheaf(scratch_, pced + to("pced"));
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_NE(changed.err.find("the passages (input.corpus) changed"), std::string::npos) << changed.err;
}

TEST_F(PcedRun, DocumentsAreScoredByTheQuestion) {
  const std::string run = "run " + job(hotpot(), "name: pced");
  ASSERT_EQ(run_sheaf(scratch_, run + to("lexical")).exit_code, 1);
  const Ran ran = run_sheaf(scratch_, run + to("scored") + " --set input.scores=question");
  ASSERT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_EQ(read_json_lines(rows("scored")).size(), 40u);
  EXPECT_NE(rows("scored"), rows("lexical"));
  const std::string set = " --set input.scores=question";
  EXPECT_EQ(run_sheaf(scratch_, run + to("steps") + set + " --set engine.tokens_per_step=3").exit_code, 1);
  EXPECT_EQ(rows("steps"), rows("scored"));
  const Ran verified = run_sheaf(scratch_, "verify " + scratch_.path("job.yaml") + " --json --limit 9" + set);
  EXPECT_EQ(json::parse(verified.out)["exact_match"], 1.0) << verified.err;
  const Ran plan = run_sheaf(scratch_, "plan " + scratch_.path("job.yaml") + set);
  EXPECT_NE(plan.out.find("documents makes its question"), std::string::npos) << plan.out << plan.err;
  // Without a prior, scores do not matter.
  ASSERT_EQ(run_sheaf(scratch_, run + to("none") + " --set method.prior_weight=0").exit_code, 1);
  ASSERT_EQ(run_sheaf(scratch_, run + to("free") + set + " --set method.prior_weight=0").exit_code, 1);
  EXPECT_EQ(rows("none"), rows("free"));
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
  EXPECT_NE(error(hotpot() + ", scores: question", "name: standard").find("works only with method.name pced"),
            std::string::npos);
  EXPECT_NE(error(own + ", corpus: " + scratch_.path("hotpot.jsonl"), "name: pced")
                .find("needs input.top_documents"),
            std::string::npos);
  EXPECT_NE(error(own + ", corpus: " + scratch_.path("none.jsonl") + ", top_documents: 1", "name: pced")
                .find("none.jsonl"),
            std::string::npos);
  EXPECT_NE(error(own + ", context: a, corpus: b", "name: pced").find("are both given"), std::string::npos);
  EXPECT_NE(error(own + ", corpus: " + scratch_.path("hotpot.jsonl") + ", top_documents: 1, scores: s",
                  "name: pced")
                .find("set input.scores to question"),
            std::string::npos);
  EXPECT_NE(error(hotpot() + ", too_long: truncate", "name: pced").find("input.too_long"), std::string::npos);
  EXPECT_NE(error(hotpot(), "name: ippd, contrast: 1").find("works only with method.name pced"),
            std::string::npos);
  EXPECT_NE(error(hotpot(), "name: pced, contrast: much").find("method.contrast"), std::string::npos);
  EXPECT_NE(error(hotpot(), "name: pced, aggregate: sum").find("method.aggregate"), std::string::npos);
}

}  // namespace
}  // namespace sheaf

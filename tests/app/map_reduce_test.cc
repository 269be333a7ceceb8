// Method map-reduce through the program: against two runs one after the other, resumed, reused, planned,
// verified.
#include <gtest/gtest.h>
#include <regex>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran, test::read_json_lines, test::run_sheaf;

constexpr int kRecords = 24;

class MapReduceRun : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    const char* towns[] = {"Oss", "Arn", "Leith", "Dale"};
    std::string lines;
    for (int i = 0; i < kRecords; ++i) {
      json documents = json::array();
      for (int k = 0; k < 1 + i % 4; ++k)
        documents.push_back("Bridge " + std::to_string(i) + " is in " + towns[k] + ".");
      if (i == 9) documents = json::array();
      records_.push_back({{"id", "r" + std::to_string(i)},
                          {"docs", documents},
                          {"q", "Where is bridge " + std::to_string(i) + "?"}});
      lines += records_.back().dump() + "\n";
    }
    scratch_.write("rows.jsonl", lines);
  }

  /// Rows have log-probabilities, which tell apart what a tiny model answers alike.
  std::string job(const std::string& method, const std::string& input = "documents: docs",
                  const std::string& path = "rows.jsonl") const {
    return scratch_.write(
        "job.yaml", "model: {path: " + model_ + ", chat: chatml}\ninput: {path: " + scratch_.path(path) +
                        ", id: id, question: q, " + input + "}\ntask: {kind: ask}\nmethod: {" + method +
                        "}\nengine: {device: cpu, threads: 1, window: 8}\noutput: {path: " +
                        scratch_.path("out") + ", logprobs: true}\n");
  }
  std::string to(const std::string& name) const { return " -q --set output.path=" + scratch_.path(name); }
  std::string rows(const std::string& folder) const {
    return read_text(scratch_.path(folder) + "/rows-00000.jsonl");
  }
  /// Runs `standard` on made-up records and gives its rows.
  std::string run_standard(const std::string& name, const std::string& lines, int most) const {
    scratch_.write(name + ".jsonl", lines);
    const Ran ran = run_sheaf(scratch_, "run " +
                                            job("name: standard, max_value_tokens: " + std::to_string(most),
                                                "context: text", name + ".jsonl") +
                                            to(name));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return rows(name);
  }

  /// The rows of map-reduce are those of `standard` over the findings of `standard`.
  void expect_two_runs_give_the_same() const;

  TempFolder scratch_;
  std::string model_;
  std::vector<json> records_;
};

constexpr const char* kMethod = "name: map-reduce, finding_tokens: 6, max_value_tokens: 5";

void MapReduceRun::expect_two_runs_give_the_same() const {
  const Ran ran = run_sheaf(scratch_, "run " + job(kMethod) + to("two-rounds"));
  EXPECT_EQ(ran.exit_code, 1) << ran.err;  // one record has no documents

  std::string alone;
  for (const json& record : records_)
    for (const json& document : record["docs"])
      alone += json{{"id", record["id"]}, {"text", document}, {"q", record["q"]}}.dump() + "\n";
  std::map<std::string, std::string> found;
  int findings = 0;
  for (const json& row : read_json_lines(run_standard("alone", alone, 6))) {
    if (row["answer"].is_null()) continue;
    std::string& text = found[row["id"]];
    // A byte that is no text stays out of the last prompt.
    const std::string answer = std::regex_replace(row["answer"].get<std::string>(), std::regex("\uFFFD"), "");
    text += (text.empty() ? "" : "\n\n") + answer;
    ++findings;
  }
  EXPECT_GT(findings, 40);
  std::string last;
  for (const json& record : records_)
    if (!record["docs"].empty())
      last += json{{"id", record["id"]}, {"text", found[record["id"]]}, {"q", record["q"]}}.dump() + "\n";
  EXPECT_EQ(rows("two-rounds"), run_standard("last", last, 5));

  const json report = json::parse(read_text(scratch_.path("two-rounds") + "/report.json"));
  EXPECT_EQ(report["answers"], kRecords - 1);
  int64_t tokens = 0;
  for (const char* run : {"alone", "last"})
    tokens += json::parse(read_text(scratch_.path(run) + "/report.json"))["tokens"]["answers"].get<int64_t>();
  EXPECT_EQ(report["tokens"]["answers"], tokens) << "the tokens of both rounds";
}

TEST_F(MapReduceRun, EqualsARunOverDocumentsAndARunOverItsAnswers) {
  expect_two_runs_give_the_same();
}

TEST_F(MapReduceRun, FindingsOfFullLengthAreWholeWhereABlankLineAloneIsOneToken) {
  // Alone, two line breaks are one token; before a letter the tokenizer splits off the last one.
  const std::string path = model_ + "/tokenizer.json";
  json tokenizer = json::parse(read_text(path));
  json& vocab = tokenizer["model"]["vocab"];
  vocab["\u010a\u010a"] = vocab["\u0101"];
  vocab.erase("\u0101");
  tokenizer["model"]["merges"] = {{"\u010a", "\u010a"}};
  scratch_.write("model/tokenizer.json", tokenizer.dump());
  expect_two_runs_give_the_same();
}

TEST_F(MapReduceRun, DoesNotDependOnStepsWindowsOrWhereItStopped) {
  for (const std::string findings : {"answers", "summaries"}) {
    const std::string run = "run " + job(std::string(kMethod) + ", temperature: 1, findings: " + findings);
    EXPECT_EQ(run_sheaf(scratch_, run + to(findings)).exit_code, 1);
    // Stopped by too many rejects after the first windows, and then allowed to continue.
    const std::string parts = to(findings + "-parts");
    EXPECT_EQ(run_sheaf(scratch_, run + parts + " --max-rejects 0").exit_code, 2);
    EXPECT_FALSE(std::filesystem::exists(scratch_.path(findings + "-parts/rows-00000.jsonl")));
    EXPECT_EQ(run_sheaf(scratch_, run + parts).exit_code, 1);
    EXPECT_EQ(rows(findings + "-parts"), rows(findings));
    EXPECT_EQ(run_sheaf(scratch_, run + to(findings + "-steps") +
                                      " --set engine.tokens_per_step=3 --set engine.window=40")
                  .exit_code,
              1);
    EXPECT_EQ(rows(findings + "-steps"), rows(findings));
    const Ran verified = run_sheaf(scratch_, "verify " + scratch_.path("job.yaml"));
    EXPECT_NE(verified.out.find("19 answers, exact match 1.0000"), std::string::npos) << verified.out;
    EXPECT_NE(verified.err.find("the same two rounds with one prompt per document and question: 19 answers"),
              std::string::npos)
        << verified.err;
  }
  EXPECT_NE(rows("answers"), rows("summaries"));
}

TEST_F(MapReduceRun, ReusesAnswersOfTheSameSettingsOnly) {
  const std::string run = "run " + job(kMethod);
  EXPECT_EQ(run_sheaf(scratch_, run + to("first")).exit_code, 1);
  const auto again = [&](const std::string& name, const std::string& set) {
    EXPECT_EQ(
        run_sheaf(scratch_, run + to(name) + " --set output.reuse=" + scratch_.path("first") + set).exit_code,
        1);
    return json::parse(read_text(scratch_.path(name) + "/report.json"))["tokens"]["computed"].get<int64_t>();
  };
  EXPECT_EQ(again("same", ""), 0);
  EXPECT_EQ(rows("same"), rows("first"));
  EXPECT_GT(again("longer", " --set method.finding_tokens=9"), 0);
  EXPECT_GT(again("other", " --set method.findings=summaries"), 0);
}

TEST_F(MapReduceRun, PlanAndEstimateCountBothRounds) {
  const std::string made = job(kMethod, "documents: docs, limit: 9");
  const Ran plan = run_sheaf(scratch_, "plan " + made + " --json --answer-tokens 4");
  const json planned = json::parse(plan.out);
  EXPECT_EQ(planned["answers"], 9);
  EXPECT_EQ(planned["findings"], 2 * (1 + 2 + 3 + 4) + 1);
  const Ran estimate = run_sheaf(scratch_, "estimate " + made + " --hardware h200 --json --answer-tokens 4");
  const json estimated = json::parse(estimate.out);
  EXPECT_EQ(estimated["tokens_computed"], planned["tokens_computed"]) << estimate.err;
  EXPECT_EQ(estimated["findings"], planned["findings"]);
  EXPECT_EQ(estimated["tokens_a_finding"], 6);
  EXPECT_EQ(estimated["tokens_an_answer"], 4);
  // Longer findings are decoded in the first round and read in the second.
  const json longer = json::parse(
      run_sheaf(scratch_, "plan " + made + " --json --answer-tokens 4 --set method.finding_tokens=16").out);
  EXPECT_EQ(
      longer["tokens_one_prompt_per_question"],
      planned["tokens_one_prompt_per_question"].get<int64_t>() + 2 * 10 * planned["findings"].get<int64_t>());
  const Ran made_up =
      run_sheaf(scratch_,
                "estimate --model smollm2-135m --hardware h200 --method map-reduce --document-tokens 50 "
                "--documents-per-record 4 --records 10 --json");
  EXPECT_EQ(json::parse(made_up.out)["findings"], 40) << made_up.err;

  const Ran prompt = run_sheaf(scratch_, "plan " + made + " --prompt 3 --set method.finding_tokens=12");
  EXPECT_NE(prompt.out.find("then, in a second round: 1 answer to decode"), std::string::npos) << prompt.out;
  EXPECT_NE(prompt.out.find("[finding 1]\n    \n    [finding 2]\n    \n    [finding 3]"), std::string::npos)
      << prompt.out;
  EXPECT_NE(prompt.err.find("rounds   2: first 21 findings of at most 12 tokens"), std::string::npos)
      << prompt.err;
  const json graph = json::parse(run_sheaf(scratch_, "plan " + made + " --dump 1").out);
  EXPECT_EQ(graph["slots"].size(), 1u);
  EXPECT_EQ(graph["longest_next"]["slots"][0]["record"], "r0");
}

TEST_F(MapReduceRun, MistakesInTheJobAreNamed) {
  const auto error = [&](const std::string& made, const std::string& more = "") {
    const Ran ran = run_sheaf(scratch_, "run -q " + made + more);
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    return ran.err;
  };
  EXPECT_NE(error(job(kMethod, "context: q"))
                .find("method.name map-reduce asks about several documents one by one; set input.documents"),
            std::string::npos);
  EXPECT_NE(error(job(kMethod, "documents: docs, too_long: split")).find("cannot be split"),
            std::string::npos);
  EXPECT_NE(error(job("name: standard, finding_tokens: 9")).find("works only with method.name map-reduce"),
            std::string::npos);
  EXPECT_NE(error(job("name: map-reduce, findings: notes")).find("use one of answers, summaries"),
            std::string::npos);
  EXPECT_NE(error(job("name: map-reduce, finding_tokens: 0")).find("method.finding_tokens"),
            std::string::npos);
  EXPECT_NE(error("configs/demo.yaml", " --set method.name=map-reduce" + to("x"))
                .find("works only with task.kind ask"),
            std::string::npos);
  const Ran train = run_sheaf(scratch_, "plan " + job("name: map-reduce, finding_tokens: 4000"));
  EXPECT_NE((train.out + train.err).find("lower method.finding_tokens"), std::string::npos) << train.err;
}

}  // namespace
}  // namespace sheaf

// sheaf export and import through the program: a job's prompts to a service, and its replies as a run.
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran, test::run_sheaf, test::read_json_lines;

std::string reply_line(const json& id, const json& content) {
  return json{{"custom_id", id},
              {"response",
               {{"status_code", 200},
                {"body", {{"choices", {{{"message", {{"content", content}}}, {"finish_reason", "stop"}}}}}}}},
              {"error", nullptr}}
             .dump() +
         "\n";
}

class Exchange : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    scratch_.write(
        "schema.yaml",
        "categories: {Tea: [{name: Brand}, {name: Weight, type: number}, {name: Form, type: enum, options: "
        "[bags, loose]}]}\n");
    scratch_.write(
        "tea.jsonl",
        R"({"id": "a", "kind": "Tea", "text": "Oak tea 20 g", "gold": {"Brand": "Oak", "Weight": 20}}
{"id": "b", "kind": "Tea", "text": "Elm bags", "gold": {"Brand": "Elm", "Form": "bags"}}
{"id": "c", "kind": "Tea", "text": "nobody knows", "gold": {}}
{"id": "a", "kind": "Tea", "text": "the same id", "gold": {}}
{"id": "d", "kind": "Soup", "text": "no tea", "gold": {}}
)");
    scratch_.write(
        "job.yaml",
        "model: {path: " + model_ + ", chat: chatml}\ninput: {path: " + scratch_.path("tea.jsonl") +
            ", id: id, category: kind, document: [text]}\ntask: {kind: extract, schema: " +
            scratch_.path("schema.yaml") +
            "}\nengine: {device: cpu, threads: 1}\noutput: {path: " + scratch_.path("out") + "}\n");
  }

  Ran exports(const std::string& more = "", const std::string& job = "job.yaml") const {
    return run_sheaf(scratch_,
                     "export " + scratch_.path(job) + " " + scratch_.path("requests.jsonl") + " " + more);
  }
  Ran imports(const std::string& replies, const std::string& more = "",
              const std::string& job = "job.yaml") const {
    scratch_.write("replies.jsonl", replies);
    return run_sheaf(scratch_, "import " + scratch_.path(job) + " " + scratch_.path("teacher") + " " +
                                   scratch_.path("replies.jsonl") + " " + more);
  }
  std::vector<json> lines(const std::string& file) const {
    return read_json_lines(read_text(scratch_.path(file)));
  }

  TempFolder scratch_;
  std::string model_;
};

const std::string kGood = reply_line("a", R"({"Brand": "Oak", "Weight": 20, "Form": null})") +
                          reply_line("b", "```json\n{\"Brand\": \"Elm\", \"Form\": \"bags\"}\n```");

TEST_F(Exchange, WritesARequestForEachRecord) {
  const Ran ran = exports("--model big-1 --body '{\"temperature\": 0}'");
  EXPECT_EQ(ran.exit_code, 1) << "two records are rejected\n" << ran.err;
  EXPECT_NE(ran.err.find("an earlier record has the id \"a\""), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("category \"Soup\" is not in the schema"), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("3 requests about 3 records in "), std::string::npos) << ran.out;
  const std::vector<json> requests = lines("requests.jsonl");
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0]["custom_id"], "a");
  EXPECT_EQ(requests[0]["method"], "POST");
  EXPECT_EQ(requests[0]["url"], "/v1/chat/completions");
  EXPECT_EQ(requests[0]["body"]["model"], "big-1");
  EXPECT_EQ(requests[0]["body"]["temperature"], 0);
  const std::string text = requests[0]["body"]["messages"][0]["content"];
  EXPECT_NE(text.find("Product:\nOak tea 20 g"), std::string::npos) << text;
}

TEST_F(Exchange, ItsRequestsAreAJobOfSheafToo) {
  exports();
  scratch_.write("chat.yaml",
                 "model: {path: " + model_ +
                     ", chat: chatml}\ninput: {path: " + scratch_.path("requests.jsonl") +
                     "}\ntask: {kind: chat}\nmethod: {name: prefix, max_value_tokens: 4}\nengine: {device: "
                     "cpu, threads: 1}\noutput: {format: openai-batch, path: " +
                     scratch_.path("chat") + "}\n");
  const Ran ran = run_sheaf(scratch_, "run " + scratch_.path("chat.yaml"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const Ran back = imports(read_text(scratch_.path("chat/rows-00000.jsonl")));
  EXPECT_EQ(back.exit_code, 2) << "the model writes noise";
  EXPECT_NE(back.err.find("no reply can be used"), std::string::npos) << back.err;
}

TEST_F(Exchange, MakesRepliesAFinishedRun) {
  const Ran ran = imports(kGood + reply_line("z", "{}") + "{broken\n");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_NE(ran.out.find("2 rows in "), std::string::npos) << ran.out;
  const std::vector<json> rows = lines("teacher/rows-00000.jsonl");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["id"], "a");
  EXPECT_EQ(rows[0]["category"], "Tea");
  EXPECT_EQ(rows[0]["values"], (json{{"Brand", "Oak"}, {"Weight", 20}, {"Form", nullptr}}));
  EXPECT_EQ(rows[1]["notes"]["Weight"], "the model left it out");
  std::vector<std::string> reasons;
  for (const json& reject : lines("teacher/rejects.jsonl")) reasons.push_back(reject["reason"]);
  ASSERT_EQ(reasons.size(), 5u);
  EXPECT_EQ(reasons[0], "the service gave no reply");
  EXPECT_TRUE(reasons[1].starts_with("an earlier record has the id \"a\"")) << reasons[1];
  EXPECT_TRUE(reasons[2].starts_with("category \"Soup\"")) << reasons[2];
  EXPECT_TRUE(reasons[3].starts_with("not valid JSON")) << reasons[3];
  EXPECT_EQ(reasons[4], "no request of the job has this custom_id");
  EXPECT_EQ(run_sheaf(scratch_, "verify-run " + scratch_.path("teacher")).exit_code, 0);
}

TEST_F(Exchange, OtherCommandsReadTheRun) {
  ASSERT_EQ(imports(kGood).exit_code, 1);
  const std::string run = scratch_.path("teacher");
  const Ran score = run_sheaf(scratch_, "score --metric attributes --gold " + scratch_.path("tea.jsonl") +
                                            " --pred " + run + " --skip-missing --json");
  EXPECT_EQ(score.exit_code, 0) << score.err;
  const Ran review = run_sheaf(scratch_, "review " + run + " --out " + scratch_.path("page.html"));
  EXPECT_EQ(review.exit_code, 0) << review.err;
  const Ran show = run_sheaf(scratch_, "show " + run);
  EXPECT_NE(show.out.find("Oak tea 20 g"), std::string::npos) << show.out << show.err;
  const Ran report = run_sheaf(scratch_, "report " + run);
  EXPECT_EQ(report.exit_code, 0) << report.err;
  const Ran data = run_sheaf(scratch_, "train-data " + scratch_.path("job.yaml") + " " +
                                           scratch_.path("t.parquet") + " --rows " + run);
  EXPECT_NE(data.out.find("2 records in "), std::string::npos) << data.out << data.err;
}

TEST_F(Exchange, AFolderIsNotWrittenOverUnasked) {
  ASSERT_EQ(imports(kGood).exit_code, 1);
  const Ran same = imports(kGood);
  EXPECT_EQ(same.exit_code, 1);
  EXPECT_NE(same.err.find("already holds these replies"), std::string::npos) << same.err;
  const std::string others = reply_line("a", R"({"Brand": "Ash"})");
  EXPECT_EQ(imports(others).exit_code, 2);
  EXPECT_EQ(lines("teacher/rows-00000.jsonl").size(), 2u);
  EXPECT_EQ(imports(others, "--restart").exit_code, 1);
  EXPECT_EQ(lines("teacher/rows-00000.jsonl").at(0)["values"]["Brand"], "Ash");
}

TEST_F(Exchange, WritesTables) {
  EXPECT_EQ(imports(kGood, "--set output.format=parquet").exit_code, 1);
  EXPECT_EQ(run_sheaf(scratch_, "verify-run " + scratch_.path("teacher")).exit_code, 0);
}

TEST_F(Exchange, QuestionsGoOneByOne) {
  scratch_.write(
      "ask.jsonl",
      R"({"id": "m", "text": "The mill of Arn.", "questions": [{"id": "q1", "question": "Where?"}, {"id": "q2", "question": "Who?"}, {"id": "q3", "question": "Which?", "options": ["x", "y"]}]})"
      "\n");
  scratch_.write("ask.yaml",
                 "model: {path: " + model_ + ", chat: chatml}\ninput: {path: " + scratch_.path("ask.jsonl") +
                     ", id: id, context: text, questions: questions}\ntask: {kind: ask}\nmethod: {name: "
                     "ippd}\nengine: {device: cpu, threads: 1}\noutput: {path: " +
                     scratch_.path("out") + "}\n");
  EXPECT_EQ(exports("", "ask.yaml").exit_code, 0);
  EXPECT_EQ(lines("requests.jsonl").size(), 3u);
  const Ran ran = imports(reply_line("q1", "Arn") + reply_line("q3", "B) y"), "", "ask.yaml");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const json row = lines("teacher/rows-00000.jsonl").at(0);
  EXPECT_EQ(row["answers"][0]["answer"], "Arn");
  EXPECT_EQ(row["answers"][1]["answer"], nullptr);
  EXPECT_EQ(row["answers"][1]["note"], "the service gave no reply");
  EXPECT_EQ(row["answers"][2]["answer"], "B");
  EXPECT_EQ(row["answers"][2]["option"], "y");
}

TEST_F(Exchange, AJudgeIsAskedAboutARun) {
  ASSERT_EQ(imports(kGood).exit_code, 1);
  const Ran ran = exports("--judge " + scratch_.path("teacher"));
  EXPECT_NE(ran.out.find("1 record left out: "), std::string::npos) << ran.out << ran.err;
  const std::vector<json> requests = lines("requests.jsonl");
  ASSERT_EQ(requests.size(), 2u);
  const std::string text = requests[0]["body"]["messages"][0]["content"];
  EXPECT_NE(text.find("Classify each attribute into 1 of 5 types"), std::string::npos) << text;
  EXPECT_NE(text.find("\"Brand\": \"Oak\""), std::string::npos) << text;
  scratch_.write("judged.jsonl",
                 reply_line("a", "<result>{\"Brand\": \"correct\", \"Weight\": \"incorrect\"}</result>"));
  const Ran back =
      run_sheaf(scratch_, "import " + scratch_.path("job.yaml") + " " + scratch_.path("j.jsonl") + " " +
                              scratch_.path("judged.jsonl") + " --judge");
  EXPECT_NE(back.out.find("1 judged record in "), std::string::npos) << back.out << back.err;
  const Ran score =
      run_sheaf(scratch_, "score --metric llm-f1 --judgements " + scratch_.path("j.jsonl") + " --json");
  EXPECT_EQ(score.exit_code, 0) << score.err;
  EXPECT_NE(score.out.find("\"llm_f1\""), std::string::npos) << score.out;
}

TEST_F(Exchange, RefusesWhatCannotWork) {
  const auto refusal = [&](const Ran& ran) {
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    return ran.err;
  };
  EXPECT_NE(refusal(exports("--body '[]'")).find("must be a JSON object"), std::string::npos);
  EXPECT_NE(refusal(exports("--body '{\"messages\": []}'")).find("leave them out"), std::string::npos);
  EXPECT_NE(refusal(exports("--body '{'")).find("--body: not valid JSON"), std::string::npos);
  EXPECT_NE(refusal(imports("")).find("has no replies"), std::string::npos);
  EXPECT_NE(refusal(imports("x\n")).find("replies.jsonl:1: not valid JSON"), std::string::npos);
  EXPECT_NE(refusal(imports(reply_line("z", "x"))).find("no reply can be used"), std::string::npos);
  const Ran over =
      run_sheaf(scratch_, "export " + scratch_.path("job.yaml") + " " + scratch_.path("tea.jsonl"));
  EXPECT_NE(refusal(over).find("the command reads this file"), std::string::npos);
}

}  // namespace
}  // namespace sheaf

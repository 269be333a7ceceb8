// model.reasoning through the program: thoughts before answers to requests.
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::run_sheaf;

class ThinkingJobs : public testing::Test {
 protected:
  ThinkingJobs() {
    // The tiny model's tokens are bytes: one of them ends a thought.
    scratch_.write("think.yaml",
                   "user_open: 'U:'\nturn: ' A:'\nanswer_close: '.'\nthink_turn: ' T:'\nthink_end: e\n"
                   "think_close: 'e|'\nthink_cut: '~e|'\n");
    scratch_.write("job.yaml", "model: {path: " + test::make_tiny_model(scratch_) +
                                   ", chat: think.yaml}\ninput: {path: batch.jsonl}\ntask: {kind: chat}\n"
                                   "method: {name: ippd, max_value_tokens: 9}\n"
                                   "engine: {device: cpu, window: 4}\noutput: {path: out}\n");
    std::string lines;
    for (int i = 0; i < 9; ++i) {
      const json messages{{{"role", "user"}, {"content", "What is " + std::to_string(i * 37) + "?"}}};
      lines += json{{"custom_id", "r" + std::to_string(i)},
                    {"method", "POST"},
                    {"url", "/v1/chat/completions"},
                    {"body", {{"model", "m"}, {"messages", messages}}}}
                   .dump() +
               "\n";
    }
    scratch_.write("batch.jsonl", lines);
  }

  Ran run(const std::string& more, const std::string& folder = "out") {
    return run_sheaf(scratch_, "run " + scratch_.path("job.yaml") +
                                   " --restart --set output.path=" + scratch_.path(folder) + " " + more);
  }
  std::vector<json> rows(const std::string& folder = "out") const {
    return read_json_lines(read_text(scratch_.path(folder + "/rows-00000.jsonl")));
  }

  const std::string kThinks_ = "--set model.reasoning=medium --set model.reasoning_tokens=12 ";
  TempFolder scratch_;
};

TEST_F(ThinkingJobs, ThoughtsStandApartFromAnswers) {
  const Ran ran = run(kThinks_ + "--set output.reasoning=true --set output.raw=true");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::vector<json> with = rows();
  ASSERT_EQ(with.size(), 9u);
  for (const json& row : with) {
    const auto thought = row.at("reasoning").get<std::string>(), raw = row.at("raw").get<std::string>();
    EXPECT_EQ(thought.find('e'), std::string::npos) << row;
    const bool cut = row.contains("note");
    EXPECT_EQ(cut, raw.starts_with(thought + "~e|")) << row;
    EXPECT_EQ(raw, thought + (cut ? "~e|" : "e|") + row.at("answer").get<std::string>()) << row;
    if (cut) {
      EXPECT_EQ(row.at("note"), "the thought was cut at model.reasoning_tokens");
    }
  }
  // Without being asked for, thoughts are nowhere.
  ASSERT_EQ(run(kThinks_).exit_code, 0);
  const std::vector<json> without = rows();
  for (size_t i = 0; i < with.size(); ++i) {
    EXPECT_FALSE(without[i].contains("reasoning"));
    EXPECT_EQ(without[i].at("answer"), with[i].at("answer"));
  }
  // Thinking off is another prompt.
  ASSERT_EQ(run("").exit_code, 0);
  int differ = 0;
  for (size_t i = 0; i < with.size(); ++i) differ += rows()[i].at("answer") != with[i].at("answer");
  EXPECT_GT(differ, 0);
}

TEST_F(ThinkingJobs, EveryPackingGivesTheSameThoughts) {
  const std::string more = kThinks_ + "--set output.reasoning=true ";
  ASSERT_EQ(run(more).exit_code, 0);
  const std::vector<json> packed = rows();
  for (const char* method : {"separate", "prefix", "standard"}) {
    ASSERT_EQ(run(more + "--set method.name=" + method).exit_code, 0);
    EXPECT_EQ(rows(), packed) << method;
  }
  const Ran verified = run_sheaf(scratch_, "verify " + scratch_.path("job.yaml") + " " + more);
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_NE(verified.out.find("1.0000"), std::string::npos) << verified.out;
}

TEST_F(ThinkingJobs, AReusedAnswerHasItsThought) {
  const std::string more = kThinks_ + "--set output.reasoning=true ";
  ASSERT_EQ(run(more, "first").exit_code, 0);
  const Ran again = run(more + "--set output.reuse=" + scratch_.path("first"));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(rows(), rows("first"));
  EXPECT_EQ(run(kThinks_ + "--set output.format=parquet --set output.reasoning=true", "table").exit_code, 0);
}

TEST_F(ThinkingJobs, FreeAnswersToQuestionsThinkToo) {
  std::string lines;
  for (int i = 0; i < 6; ++i) {
    json questions{{{"id", "a"}, {"question", "What?"}},
                   {{"id", "b"}, {"question", "Which?"}, {"options", {"x", "y"}}}};
    lines += json{{"context", "Text " + std::to_string(i * 71)}, {"questions", questions}}.dump() + "\n";
  }
  scratch_.write("ask.jsonl", lines);
  scratch_.write("ask.yaml",
                 "model: {path: model, chat: think.yaml, reasoning: low, reasoning_tokens: 12}\n"
                 "input: {path: ask.jsonl, context: context, questions: questions}\ntask: {kind: ask}\n"
                 "method: {name: ippd, max_value_tokens: 7}\nengine: {device: cpu}\n"
                 "output: {path: out, reasoning: true, raw: true}\n");
  const auto asked = [&](const std::string& more) {
    const Ran ran = run_sheaf(scratch_, "run " + scratch_.path("ask.yaml") + " --restart --set output.path=" +
                                            scratch_.path("out") + " " + more);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return rows();
  };
  const std::vector<json> packed = asked("");
  ASSERT_EQ(packed.size(), 6u);
  for (const json& row : packed) {
    EXPECT_TRUE(row["answers"][0].contains("reasoning")) << row;
    EXPECT_EQ(row["answers"][0]["reasoning"].get<std::string>().find('e'), std::string::npos);
    EXPECT_FALSE(row["answers"][1].contains("reasoning")) << "an option is chosen at once: " << row;
  }
  for (const char* method : {"separate", "prefix"})
    EXPECT_EQ(asked(std::string("--set method.name=") + method), packed);
  const Ran list =
      run_sheaf(scratch_, "run " + scratch_.path("ask.yaml") +
                              " --restart --set method.name=seqbatch --set output.reasoning=null");
  EXPECT_EQ(list.exit_code, 2);
  EXPECT_NE(list.err.find("model.reasoning does not work with method.name seqbatch"), std::string::npos)
      << list.err;
  const Ran table =
      run_sheaf(scratch_, "run " + scratch_.path("ask.yaml") + " --restart --set output.format=parquet");
  EXPECT_EQ(table.exit_code, 2);
  EXPECT_NE(table.err.find("output.reasoning of several answers works only with output.format jsonl"),
            std::string::npos)
      << table.err;
}

TEST_F(ThinkingJobs, WhereItCannotThinkIsSaid) {
  const auto refused = [&](const std::string& more, const std::string& part) {
    const Ran ran = run(more);
    EXPECT_EQ(ran.exit_code, 2) << more;
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
  };
  refused(
      "--set model.chat=chatml --set model.reasoning=low",
      "model.reasoning: low does not work with the chat template chatml, which has no switch for thoughts");
  refused("--set model.chat=qwen3 --set model.reasoning=low", "has no token \"</think>\"");
  refused("--set output.reasoning=true",
          "output.reasoning works only with model.reasoning low, medium and high");
  refused(kThinks_ + "--set output.reasoning=true --set output.format=openai-batch",
          "output.reasoning works only with output.format jsonl, parquet and arrow");
  refused("--set model.reasoning=much", "model.reasoning");
  const Ran demo = run_sheaf(scratch_, "plan configs/demo.yaml --set model.reasoning=low");
  EXPECT_EQ(demo.exit_code, 2);
  EXPECT_NE(demo.err.find("model.reasoning works only with task.kind chat and ask"), std::string::npos)
      << demo.err;
}

}  // namespace
}  // namespace sheaf

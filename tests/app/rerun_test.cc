// The same job again over a corpus that has changed: what is refused, in which words, and what a restart
// keeps.
#include <gtest/gtest.h>
#include <regex>

#include "tests/app/running.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::run_sheaf;
using test::Running;

constexpr int kMany = 400;  // records, of which a restart that is stopped leaves most

class Rerun : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    write_corpus(6);
    write_job(scratch_.path("out"));
  }

  void write_corpus(int records) {
    std::string lines;
    for (int i = 0; i < records; ++i)
      lines +=
          json{{"n", i}, {"c", "Box " + std::to_string(i) + " holds tea."}, {"q", "What?"}}.dump() + "\n";
    scratch_.write("corpus.jsonl", lines);
  }

  void write_job(const std::string& output) {
    scratch_.write("night.yaml", "model: {path: " + model_ +
                                     ", chat: plain}\ninput: {path: " + scratch_.path("corpus.jsonl") +
                                     ", id: n, context: c, question: q}\n"
                                     "task: {kind: ask, instruction: Tell}\n"
                                     "method: {name: ippd, max_value_tokens: 4}\n"
                                     "engine: {device: cpu}\noutput:\n  path: " +
                                     output + "\n");
  }

  Ran run(const std::string& more = "") {
    return run_sheaf(scratch_, "run " + scratch_.path("night.yaml") + " " + more);
  }
  int64_t rows(const std::string& folder) const {
    const std::string text = read_text(scratch_.path(folder) + "/rows-00000.jsonl");
    return std::count(text.begin(), text.end(), '\n');
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(scratch_.path(name)); }

  /// Starts a restart and stops it once some of its rows are safe.
  std::string stop_restart(int signal, int code) {
    write_corpus(kMany);
    Running job(
        "run " + scratch_.path("night.yaml") +
            " --restart --set engine.window=20 --set engine.prompts=1 --set method.max_value_tokens=200"
            " 2>" +
            scratch_.path("err"),
        test::stop_at_group(2));
    EXPECT_TRUE(job.stopped());
    job.send(signal);
    EXPECT_EQ(job.end(), code);
    return read_text(scratch_.path("err"));
  }

  TempFolder scratch_;
  std::string model_;
};

TEST_F(Rerun, TheFolderIsNamedAfterTheDayAndTheJob) {
  write_job(scratch_.path("runs/{job}-{date}-{time}"));
  const Ran ran = run();
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(scratch_.path("runs")))
    names.push_back(entry.path().filename());
  ASSERT_EQ(names.size(), 1u);
  EXPECT_TRUE(std::regex_match(names[0], std::regex(R"(night-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d)"))) << names[0];
  EXPECT_NE(ran.out.find("runs/" + names[0] + "/rows-*.jsonl"), std::string::npos) << ran.out;
  const Ran wrong = run("--set 'output.path=out/{dat}'");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("output.path: unknown placeholder {dat}; did you mean \"{date}\"?"),
            std::string::npos)
      << wrong.err;
}

TEST_F(Rerun, ARefusalNamesWhatChangedAndWhatToDo) {
  ASSERT_EQ(run().exit_code, 0);
  write_corpus(8);
  const Ran refused = run("--set method.seed=3");
  EXPECT_EQ(refused.exit_code, 2);
  const std::regex words(
      "holds a finished run, but since then the corpus grew: corpus\\.jsonl grew from \\d+ to \\d+ bytes; "
      "method\\.seed was 0 and is now 3; use --restart .*--restart --reuse \\S+/out .*another "
      "output\\.path");
  EXPECT_TRUE(std::regex_search(refused.err, words)) << refused.err;
  EXPECT_EQ(refused.err.find("sha256"), std::string::npos) << refused.err;
  EXPECT_EQ(rows("out"), 6);
  // The three ways, each as it is offered.
  ASSERT_EQ(run("--set output.path=" + scratch_.path("elsewhere")).exit_code, 0);
  EXPECT_EQ(rows("elsewhere"), 8);
  const Ran reused = run("--restart --reuse " + scratch_.path("out"));
  ASSERT_EQ(reused.exit_code, 0) << reused.err;
  EXPECT_NE(reused.out.find("8 rows, 2 answers"), std::string::npos) << reused.out;
  EXPECT_EQ(rows("out"), 8);
  EXPECT_EQ(read_text(scratch_.path("out/rows-00000.jsonl")),
            read_text(scratch_.path("elsewhere/rows-00000.jsonl")));
  const Ran again = run("--restart");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.out.find("8 rows, 8 answers"), std::string::npos) << again.out;
}

TEST_F(Rerun, ARunMayReuseItsOwnFolderOnlyWithRestart) {
  ASSERT_EQ(run().exit_code, 0);
  const Ran refused = run("--reuse " + scratch_.path("out"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("add --restart"), std::string::npos) << refused.err;
}

TEST_F(Rerun, AStoppedRestartKeepsTheFinishedRunAndResumes) {
  ASSERT_EQ(run().exit_code, 0);
  const std::string before = read_text(scratch_.path("out/rows-00000.jsonl"));
  const std::string err = stop_restart(SIGINT, 130);
  EXPECT_NE(err.find("safe in " + scratch_.path("out.restart")), std::string::npos) << err;
  EXPECT_NE(err.find("out is as it was; rerun the same command to resume"), std::string::npos) << err;
  EXPECT_EQ(read_text(scratch_.path("out/rows-00000.jsonl")), before);
  EXPECT_TRUE(exists("out/_SUCCESS"));
  // A plain run tells of it.
  write_corpus(6);
  const Ran plain = run();
  EXPECT_EQ(plain.exit_code, 0);
  EXPECT_NE(plain.err.find("out.restart holds a restart that is not finished"), std::string::npos)
      << plain.err;
  // The same command resumes where it was.
  write_corpus(kMany);
  const Ran resumed = run("--restart --set engine.window=20 --set method.max_value_tokens=200");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("resuming after"), std::string::npos) << resumed.err;
  EXPECT_EQ(rows("out"), kMany);
  EXPECT_FALSE(exists("out.restart"));
  EXPECT_FALSE(exists("out.previous"));
}

TEST_F(Rerun, AKilledRestartOfAnotherJobStartsOver) {
  ASSERT_EQ(run().exit_code, 0);
  stop_restart(SIGKILL, 128 + SIGKILL);
  EXPECT_EQ(rows("out"), 6);
  EXPECT_TRUE(exists("out/_SUCCESS"));
  write_corpus(9);
  const Ran ran = run("--restart --keep-previous");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(rows("out"), 9);
  EXPECT_EQ(rows("out.previous"), 6);
  EXPECT_TRUE(exists("out.previous/_SUCCESS"));
  EXPECT_FALSE(exists("out.restart"));
  EXPECT_EQ(run().exit_code, 0) << "finished";
}

TEST_F(Rerun, ARestartThatFailsReplacesNothing) {
  ASSERT_EQ(run().exit_code, 0);
  scratch_.write("corpus.jsonl", "{\"n\":1,\"c\":\"\",\"q\":\"What?\"}\n");
  EXPECT_EQ(run("--restart").exit_code, 2) << "no row";
  EXPECT_EQ(rows("out"), 6);
  EXPECT_TRUE(exists("out/_SUCCESS"));
  EXPECT_TRUE(exists("out.restart/rejects.jsonl"));
  write_corpus(3);
  ASSERT_EQ(run("--restart").exit_code, 0);
  EXPECT_EQ(rows("out"), 3);
  EXPECT_FALSE(exists("out.restart"));
}

TEST_F(Rerun, KeepPreviousNeedsRestart) {
  const Ran ran = run("--keep-previous");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("--restart"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace sheaf

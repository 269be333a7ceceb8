// Where paths of a job begin: in its file, and on the command line.
#include <filesystem>
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using test::Ran;
using test::read_json_lines;
using test::run_sheaf;
namespace fs = std::filesystem;

/// project/job.yaml, project/model, project/data/*.jsonl, and a folder elsewhere.
class JobPaths : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"project", "project/data", "elsewhere"})
      fs::create_directory(scratch_.path(name));
    fs::rename(test::make_tiny_model(scratch_), scratch_.path("project/model"));
    const std::string good = R"({"text":"Tea is hot.","question":"Is tea hot?"})";
    scratch_.write("project/data/a.jsonl", good + "\n" + R"({"text":"","question":"Why?"})" + "\n");
    scratch_.write("project/data/b.jsonl", good + "\n");
  }

  std::string job(const std::string& input = "data") const {
    return scratch_.write("project/job.yaml", "model: {path: model}\ninput: {path: " + input +
                                                  ", context: text, question: question}\n"
                                                  "task: {kind: ask, instruction: A}\n"
                                                  "method: {name: ippd, max_value_tokens: 2}\n"
                                                  "engine: {device: cpu, window: 1}\noutput: {path: out}\n");
  }
  Ran run(const std::string& arguments, const std::string& folder) const {
    return run_sheaf(scratch_, arguments, scratch_.path(folder));
  }

  const TempFolder scratch_;
};

TEST_F(JobPaths, OfAJobBeginAtItsFolder) {
  job();
  const Ran first = run("run ../project/job.yaml --quiet", "elsewhere");
  ASSERT_EQ(first.exit_code, 1) << first.err;
  const std::string rejects = read_text(scratch_.path("project/out/rejects.jsonl"));
  ASSERT_EQ(read_json_lines(rejects).size(), 1u);
  EXPECT_EQ(read_json_lines(rejects)[0]["file"], "a.jsonl") << "a name that depends on no working directory";
  EXPECT_TRUE(fs::is_empty(scratch_.path("elsewhere")));
  // It is the same run from everywhere, and after the project has moved.
  for (const auto& [path, folder] : {std::pair{"job.yaml", "project"}, {"project/job.yaml", "."}}) {
    const Ran again = run(std::string("run ") + path, folder);
    EXPECT_EQ(again.exit_code, 1);
    EXPECT_NE(again.err.find("is already finished"), std::string::npos) << again.err;
  }
  fs::rename(scratch_.path("project"), scratch_.path("moved"));
  EXPECT_NE(run("run moved/job.yaml", ".").err.find("moved/out is already finished"), std::string::npos);
}

TEST_F(JobPaths, OfOptionsBeginAtTheWorkingDirectory) {
  job("none.jsonl");
  const Ran ran = run(
      "run ../project/job.yaml --quiet --set input.path=../project/data --set output.path=here", "elsewhere");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_TRUE(fs::exists(scratch_.path("elsewhere/here/_SUCCESS")));
  EXPECT_FALSE(fs::exists(scratch_.path("project/out")));
}

TEST_F(JobPaths, OfAJobInAPipeBeginAtTheWorkingDirectory) {
  job();
  const Ran ran = test::run_shell(
      scratch_, "cd " + scratch_.path("project") + " && cat job.yaml | " SHEAF_BINARY " plan /dev/stdin");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_NE(ran.out.find("2 records in 1 bin"), std::string::npos) << ran.out;
}

TEST_F(JobPaths, MayHoldEnvironmentVariables) {
  job("\"${CORPUS}/a.jsonl\"");
  const Ran unset = run("plan project/job.yaml", ".");
  EXPECT_EQ(unset.exit_code, 2);
  EXPECT_NE(unset.err.find("project/job.yaml:2: input.path: the environment variable CORPUS is not set"),
            std::string::npos)
      << unset.err;
  ::setenv("CORPUS", "data", 1);  // still relative to the job
  EXPECT_EQ(run("plan ../project/job.yaml", "elsewhere").exit_code, 1) << "one record is a reject";
  ::setenv("CORPUS", scratch_.path("project/data").c_str(), 1);
  EXPECT_EQ(run("plan ../project/job.yaml", "elsewhere").exit_code, 1);
  ::unsetenv("CORPUS");
}

TEST_F(JobPaths, AfterPwdBeginAtTheWorkingDirectory) {
  std::string text = read_text(job());
  text.replace(text.find("path: out"), 9, "path: $PWD/out/here");
  scratch_.write("project/job.yaml", text);
  ::unsetenv("PWD");  // as under cron
  const Ran ran = run("run ../project/job.yaml --quiet", "elsewhere");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_TRUE(fs::exists(scratch_.path("elsewhere/out/here/_SUCCESS"))) << ran.err;
  EXPECT_FALSE(fs::exists(scratch_.path("project/out")));
}

TEST_F(JobPaths, OfAnEvaluationBeginAtItsFolder) {
  job();
  scratch_.write("project/eval.yaml",
                 "name: Two\noutput: {path: eval}\nmodels: [{name: tiny, path: model}]\n"
                 "datasets: [{name: tea, job: job.yaml, path: data/b.jsonl}]\nmethods: [{name: ippd}]\n");
  const Ran ran = run("eval ../project/eval.yaml --quiet", "elsewhere");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_TRUE(fs::exists(scratch_.path("project/eval/tiny/tea/ippd/_SUCCESS")));
  EXPECT_TRUE(fs::is_empty(scratch_.path("elsewhere")));
  const Ran again = run("eval eval.yaml --quiet", "project");
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

}  // namespace
}  // namespace sheaf

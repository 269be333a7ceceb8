// What a job that nobody watches needs: a report of all its sessions, a limit on rejects, documents of any
// length.
#include <gtest/gtest.h>

#include "tests/app/running.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::run_sheaf;
using test::Running;
using test::stop_at_group;

class UnattendedRun : public testing::Test {
 protected:
  void SetUp() override { model_ = test::make_tiny_model(scratch_); }

  /// A job that asks each row of the corpus one question; gives back its file.
  std::string write_job(const std::string& lines, const std::string& input = "",
                        const std::string& output = "") {
    scratch_.write("corpus.jsonl", lines);
    return scratch_.write("job.yaml", "model: {path: " + model_ +
                                          ", chat: plain}\ninput: {path: " + scratch_.path("corpus.jsonl") +
                                          ", id: n, context: c, question: q" + input +
                                          "}\ntask: {kind: ask, instruction: Tell}\n"
                                          "method: {name: ippd, max_value_tokens: 4, temperature: 1}\n"
                                          "engine: {device: cpu, window: 20}\noutput: {path: " +
                                          scratch_.path("out") + output + "}\n");
  }

  static std::string row(int number, const std::string& context = "") {
    return json{{"n", number},
                {"c", context.empty() ? "Box " + std::to_string(number) : context},
                {"q", "What?"}}
               .dump() +
           "\n";
  }

  json report(const std::string& folder) const {
    return json::parse(read_text(scratch_.path(folder) + "/report.json"));
  }

  TempFolder scratch_;
  std::string model_;
};

TEST_F(UnattendedRun, TheReportCoversEverySession) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += i % 100 == 7 ? "{broken\n" : row(i);
  const std::string job = write_job(lines);
  ASSERT_EQ(
      run_sheaf(scratch_, "run " + job + " --quiet --set output.path=" + scratch_.path("whole")).exit_code,
      1);
  const json whole = report("whole");
  int sessions = 1;
  for (;; ++sessions) {
    ASSERT_LT(sessions, 50) << "sessions get nowhere";
    // Each gets some groups further, then it is told to stop. The last one is done before.
    Running session("run " + job + " --quiet 2>" + scratch_.path("err"), stop_at_group(30));
    if (session.stopped()) session.send(SIGTERM);
    const int code = session.end();
    if (code == 1) break;
    ASSERT_EQ(code, 130) << read_text(scratch_.path("err"));
    EXPECT_TRUE(std::filesystem::exists(scratch_.path("out/progress.json")));
    const Ran so_far = run_sheaf(scratch_, "report " + scratch_.path("out"));
    EXPECT_EQ(so_far.exit_code, 0) << so_far.err;
    EXPECT_NE(so_far.err.find("is not finished"), std::string::npos) << so_far.err;
  }
  EXPECT_GT(sessions, 1);
  const json all = report("out");
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("out/progress.json")));
  EXPECT_EQ(all["sessions"], sessions);
  EXPECT_EQ(all["rows_uncounted"], 0);
  for (const char* key :
       {"rows", "rejects", "answers", "reused", "questions", "reject_reasons", "endings", "value_tokens"})
    EXPECT_EQ(all[key], whole[key]) << key;
  EXPECT_GE(all["tokens"]["computed"], whole["tokens"]["computed"]) << "what was in flight is computed again";
}

TEST_F(UnattendedRun, TheReportOfAKilledRunHasEveryRowOfTheFolder) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += row(i);
  const std::string job = write_job(lines);
  Running session("run " + job + " --quiet", stop_at_group(10));
  ASSERT_TRUE(session.stopped());
  session.send(SIGKILL);
  ASSERT_EQ(session.end(), 128 + SIGKILL);
  const Ran resumed = run_sheaf(scratch_, "run " + job);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  const json all = report("out");
  EXPECT_EQ(all["rows"], 3000);
  const int missing = all["rows_uncounted"];
  EXPECT_GT(missing, 0);
  EXPECT_EQ(all["questions"]["asked"], 3000 - missing) << "nothing is made up for rows that nobody counted";
  EXPECT_EQ(resumed.out.find("3000 rows, "), 0u) << resumed.out;
  EXPECT_NE(
      resumed.out.find(fmt::format("seconds of {} rows and 0 rejects: their session was killed", missing)),
      std::string::npos)
      << resumed.out;
  EXPECT_NE(read_text(scratch_.path("out/report.html")).find(">3,000<"), std::string::npos);
  EXPECT_NEAR(
      all["rows_per_second"].get<double>(),
      (3000 - missing) / (all["seconds"]["total"].get<double>() - all["seconds"]["open"].get<double>()),
      1e-6);
}

TEST_F(UnattendedRun, ProgressUnderALimitShowsTheExactTotal) {
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += row(i);
  const std::string log = scratch_.path("log"), job = write_job(lines);
  ASSERT_EQ(run_sheaf(scratch_, "run " + job + " --quiet --limit 40 --log " + log).exit_code, 0);
  EXPECT_NE(read_text(log).find("40 of 40 records (100 %)"), std::string::npos) << read_text(log);
  EXPECT_EQ(read_text(log).find("about"), std::string::npos) << read_text(log);
}

TEST_F(UnattendedRun, TooManyRejectsStopTheJob) {
  std::string lines;
  for (int i = 0; i < 400; ++i) lines += i >= 100 && i % 4 == 0 ? "{broken\n" : row(i);
  const std::string job = write_job(lines);
  const std::string command = "run " + job + " --quiet ";
  const Ran number = run_sheaf(scratch_, command + "--max-rejects 10");
  EXPECT_EQ(number.exit_code, 2);
  EXPECT_NE(number.err.find("15 of the first 160 records were rejected, more than --max-rejects 10"),
            std::string::npos)
      << number.err;
  EXPECT_NE(number.err.find("rejects.jsonl.part"), std::string::npos) << number.err;
  EXPECT_EQ(run_sheaf(scratch_, "report " + scratch_.path("out")).exit_code, 0)
      << "what is done can be looked at";
  // What was done is kept, and a run with a higher limit resumes there.
  const Ran share = run_sheaf(scratch_, command + "--max-rejects 15%");
  EXPECT_EQ(share.exit_code, 2);
  EXPECT_NE(share.err.find("40 of the first 260 records"), std::string::npos) << share.err;
  EXPECT_EQ(run_sheaf(scratch_, command + "--max-rejects 75").exit_code, 1);
  EXPECT_EQ(read_json_lines(read_text(scratch_.path("out/rows-00000.jsonl"))).size(), 325u);
  EXPECT_EQ(read_json_lines(read_text(scratch_.path("out/rejects.jsonl"))).size(), 75u);
  EXPECT_EQ(report("out")["rows"], 325);
  EXPECT_EQ(report("out")["rejects"], 75);
  EXPECT_EQ(report("out")["sessions"], 3);
  for (const char* wrong : {"x", "-1", "101%", "3.5", "%", "5%%", "nan", "''"}) {
    const Ran ran = run_sheaf(scratch_, command + "--max-rejects=" + wrong);
    EXPECT_EQ(ran.exit_code, 2) << wrong;
    EXPECT_NE(ran.err.find("--max-rejects"), std::string::npos) << ran.err;
  }
}

TEST_F(UnattendedRun, LongDocumentsAreCutSplitOrRejected) {
  std::string text;
  for (int i = 0; i < 2500; ++i) text += "box " + std::to_string(i) + " ";
  const std::string lines = row(0) + row(1, text) + row(2);
  const std::string run =
      "run " + write_job(lines, "", ", tokens: true, timing: true") + " --quiet --restart ";
  EXPECT_EQ(run_sheaf(scratch_, run).exit_code, 1);
  const auto rejects = read_json_lines(read_text(scratch_.path("out/rejects.jsonl")));
  ASSERT_EQ(rejects.size(), 1u);
  EXPECT_NE(rejects[0]["reason"].get<std::string>().find("input.too_long"), std::string::npos) << rejects[0];

  const auto rows = [&](const std::string& policy) {
    const Ran ran = run_sheaf(scratch_, run + "--set input.too_long=" + policy);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return read_json_lines(read_text(scratch_.path("out/rows-00000.jsonl")));
  };
  const auto cut = rows("truncate");
  ASSERT_EQ(cut.size(), 3u);
  EXPECT_FALSE(cut[0].contains("cut_tokens"));
  EXPECT_GT(cut[1]["cut_tokens"], 1000);
  EXPECT_EQ(cut[1]["document_tokens"], text.size()) << "a token a byte";
  for (const json& each : cut) EXPECT_GT(each["answer_tokens"], 0);
  for (const json& each : cut) EXPECT_GT(each["seconds"], 0.0);

  const auto split = rows("split");
  ASSERT_EQ(split.size(), 3u);
  EXPECT_FALSE(split[0].contains("parts"));
  EXPECT_GT(split[1]["parts"], 2);
  EXPECT_EQ(split[0]["answer"], cut[0]["answer"]);

  // The same as a table.
  ASSERT_EQ(run_sheaf(scratch_, run + "--set input.too_long=split --set output.format=parquet").exit_code, 0);
  const Ran about = run_sheaf(scratch_, "inspect " + scratch_.path("out/rows-00000.parquet") + " --json");
  ASSERT_EQ(about.exit_code, 0) << about.err;
  for (const char* column : {"parts", "document_tokens", "answer_tokens", "seconds"})
    EXPECT_NE(about.out.find(std::string("\"") + column + "\""), std::string::npos) << about.out;
}

TEST_F(UnattendedRun, ACorpusThatChangesDuringARunFailsIt) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += row(i);
  const std::string job = write_job(lines);
  Running session("run " + job + " --quiet 2>" + scratch_.path("err"), stop_at_group(1));
  ASSERT_TRUE(session.stopped());
  std::ofstream(scratch_.path("corpus.jsonl"), std::ios::app) << row(3000);
  EXPECT_EQ(session.end(), 2);
  EXPECT_NE(read_text(scratch_.path("err")).find("corpus.jsonl"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("out/_SUCCESS")));
}

TEST_F(UnattendedRun, AnOutputFolderAmongTheCorpusIsRefused) {
  const std::string job = write_job(row(0));
  const Ran ran = run_sheaf(scratch_, "run " + job + " --set output.path=" + scratch_.path("."));
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("choose a folder outside it"), std::string::npos) << ran.err;
}

TEST_F(UnattendedRun, AChangedModelIsRefused) {
  const std::string job = write_job(row(0) + row(1));
  ASSERT_EQ(run_sheaf(scratch_, "run " + job + " --quiet").exit_code, 0);
  std::string weights;
  for (const auto& entry : std::filesystem::directory_iterator(model_))
    if (entry.path().extension() == ".safetensors") weights = entry.path();
  ASSERT_FALSE(weights.empty());
  std::string bytes = read_text(weights);
  bytes[bytes.size() - 9] = static_cast<char>(bytes[bytes.size() - 9] ^ 1);
  std::ofstream(weights, std::ios::binary) << bytes;
  const Ran ran = run_sheaf(scratch_, "run " + job + " --quiet");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("the model changed: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("--restart"), std::string::npos) << ran.err;
  EXPECT_EQ(run_sheaf(scratch_, "run " + job + " --quiet --restart").exit_code, 0);
}

TEST_F(UnattendedRun, MergedShardsHaveOneReport) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += i == 50 ? "{broken\n" : row(i);
  const std::string run = "run " + write_job(lines) + " --quiet --set output.path=";
  EXPECT_EQ(run_sheaf(scratch_, run + scratch_.path("whole")).exit_code, 1);
  EXPECT_EQ(run_sheaf(scratch_, run + scratch_.path("a") + " --shard 0/2").exit_code, 0);
  EXPECT_EQ(run_sheaf(scratch_, run + scratch_.path("b") + " --shard 1/2").exit_code, 1);
  const Ran merged = run_sheaf(
      scratch_, "merge " + scratch_.path("ab") + " " + scratch_.path("b") + " " + scratch_.path("a"));
  ASSERT_EQ(merged.exit_code, 1) << merged.err;
  for (const char* key : {"rows", "rejects", "questions", "reject_reasons", "value_tokens"})
    EXPECT_EQ(report("ab")[key], report("whole")[key]) << key;
  EXPECT_EQ(report("ab")["sessions"], 2);
  EXPECT_TRUE(std::filesystem::exists(scratch_.path("ab/report.html")));
}

}  // namespace
}  // namespace sheaf

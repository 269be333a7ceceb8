// What others see of a run while it works: its log, its metrics, and `sheaf status`.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/jobs/run_log.h"
#include "io/jobs/run_status.h"
#include "tests/app/running.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_sheaf;
using test::Running;

class WatchedRun : public testing::Test {
 protected:
  void SetUp() override { write_corpus(200); }

  void write_corpus(int records) {
    std::string lines;
    for (int i = 0; i < records; ++i)
      lines += i % 50 == 17 ? "{broken\n"
                            : json{{"c", fmt::format("Box {} holds tea.", i)}, {"q", "What?"}}.dump() + "\n";
    scratch_.write("corpus.jsonl", lines);
    scratch_.write("job.yaml",
                   "model: {path: " + model_ +
                       ", chat: plain}\ninput: {path: " + scratch_.path("corpus.jsonl") +
                       ", context: c, question: q}\ntask: {kind: ask}\n"
                       "method: {name: ippd, max_value_tokens: 4}\n"
                       "engine: {device: cpu, window: 8}\ncost: {usd_per_hour: 3.6}\noutput: {path: " +
                       scratch_.path("out") + "}\n");
  }
  std::string command(const std::string& more) const {
    return "run " + scratch_.path("job.yaml") + " --quiet " + more;
  }
  std::vector<json> events(const std::string& log) const {
    std::vector<json> lines;
    for (const json& line : test::read_json_lines(read_text(scratch_.path(log)))) lines.push_back(line);
    return lines;
  }
  static std::vector<std::string> kinds(const std::vector<json>& events) {
    std::vector<std::string> names;
    for (const json& event : events) names.push_back(event.at("event"));
    return names;
  }

  TempFolder scratch_;
  std::string model_ = test::make_tiny_model(scratch_);
};

TEST_F(WatchedRun, AJsonLogHasALinePerEventAlsoWhenQuiet) {
  const std::string log = "--log " + scratch_.path("log") + " --log-format json";
  const Ran ran = run_sheaf(scratch_, command(log));
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_EQ(ran.err, "");
  const std::vector<json> lines = events("log");
  EXPECT_EQ(kinds(lines),
            (std::vector<std::string>{"start", "reject", "reject", "reject", "reject", "progress", "end"}));
  EXPECT_EQ(lines.front().at("output"), scratch_.path("out"));
  EXPECT_EQ(lines[1].at("place"), scratch_.path("corpus.jsonl") + ":18");
  EXPECT_EQ(lines[5].at("records"), 196);
  EXPECT_EQ(lines[5].at("rejects"), 4);
  EXPECT_EQ(lines.back().at("exit_code"), 1);
  EXPECT_EQ(lines.back().at("rows"), 196);
  EXPECT_GT(lines.back().at("usd").get<double>(), 0);
  EXPECT_EQ(run_sheaf(scratch_, command(log)).exit_code, 1)
      << "a finished run is logged too, after the first";
  EXPECT_EQ(kinds(events("log")).back(), "end");
  EXPECT_EQ(events("log").back().at("was_finished"), true);
}

TEST_F(WatchedRun, TheLogSaysThatARunIsResumedAndHowItFailed) {
  write_corpus(3000);
  const std::string log = "--log " + scratch_.path("log") + " --log-format json ";
  Running session(command(log), test::stop_at_group(10));
  ASSERT_TRUE(session.stopped());
  session.send(SIGKILL);
  ASSERT_EQ(session.end(), 128 + SIGKILL);
  EXPECT_EQ(run_sheaf(scratch_, command(log + "--max-rejects 0")).exit_code, 2);
  const std::vector<json> lines = events("log");
  const std::vector<std::string> names = kinds(lines);
  EXPECT_NE(std::ranges::find(names, "resume"), names.end());
  EXPECT_EQ(lines.back().at("event"), "end");
  EXPECT_EQ(lines.back().at("exit_code"), 2);
  EXPECT_NE(lines.back().at("error").get<std::string>().find("--max-rejects"), std::string::npos);
}

TEST_F(WatchedRun, ALogThatIsRotatedGetsANewFile) {
  RunLog log(scratch_.path("log"), true);
  log.write("note", {{"text", "one"}}, "one");
  std::filesystem::rename(scratch_.path("log"), scratch_.path("log.1"));
  log.write("note", {{"text", "two"}}, "two");
  std::filesystem::copy(scratch_.path("log"), scratch_.path("log.2"));
  std::filesystem::resize_file(scratch_.path("log"), 0);  // copytruncate
  log.write("note", {{"text", "three\xff"}}, "three");
  for (const auto& [file, text] : {std::pair{"log.1", "one"}, {"log.2", "two"}, {"log", "three\ufffd"}}) {
    ASSERT_EQ(events(file).size(), 1u) << file;
    EXPECT_EQ(events(file)[0].at("text"), text);
  }
}

TEST_F(WatchedRun, MetricsAreWrittenForPrometheus) {
  EXPECT_EQ(run_sheaf(scratch_, command("--shard 1/2 --metrics " + scratch_.path("sheaf.prom"))).exit_code,
            1);
  const std::string text = read_text(scratch_.path("sheaf.prom"));
  const std::string labels = "{job_file=\"" + scratch_.path("job.yaml") + "\",output=\"" +
                             scratch_.path("out") + "\",shard=\"1/2\"} ";
  const json report = json::parse(read_text(scratch_.path("out/report.json")));
  for (const auto& [name, value] : {std::pair<std::string, json>{"running", 0},
                                    {"exit_code", 1},
                                    {"rows", report.at("rows")},
                                    {"rejects", report.at("rejects")}}) {
    EXPECT_NE(text.find("\nsheaf_run_" + name + labels + value.dump() + "\n"), std::string::npos)
        << name << "\n"
        << text;
    EXPECT_NE(text.find("# TYPE sheaf_run_" + name + " gauge\n"), std::string::npos) << text;
  }
  const Ran wrong = run_sheaf(scratch_, command("--metrics " + scratch_.path("sheaf.txt")));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("must end in .prom"), std::string::npos) << wrong.err;
  const RunBegin run{"a\"b\\c\nd", "out", "", "", 5, 1, 10};
  const std::string odd = metrics_text(run, {{4, 0, 100, 0.001}, 10, 2}, std::nullopt, 100, 110);
  EXPECT_NE(odd.find("sheaf_run_rows{job_file=\"a\\\"b\\\\c d\",output=\"out\",shard=\"\"} 9\n"),
            std::string::npos)
      << odd;
  EXPECT_NE(odd.find("} 3\n"), std::string::npos) << "seconds left: " << odd;
}

TEST_F(WatchedRun, StatusAddsUpThePartsOfAJob) {
  write_corpus(4000);
  const auto part = [&](int i) {
    return fmt::format("--shard {}/4 --exit-zero-on-rejects --set output.path={}", i,
                       scratch_.path(fmt::format("parts/part-{}", i)));
  };
  for (const int i : {0, 2}) EXPECT_EQ(run_sheaf(scratch_, command(part(i))).exit_code, 0);
  Running session(command(part(1)), test::stop_at_group(3));
  ASSERT_TRUE(session.stopped());
  const auto status = [&](int64_t later = 0) {
    return read_status({scratch_.path("parts")}, std::time(nullptr) + later);
  };
  const auto state_of_1 = [&](int64_t later = 0) {
    return std::string(state_word(status(later).runs[1].state));
  };
  EXPECT_EQ(state_of_1(), "running");
  EXPECT_EQ(state_of_1(3600), "silent");
  EXPECT_TRUE(status(3600).runs[1].late);
  session.send(SIGTERM);
  session.send(SIGCONT);
  EXPECT_EQ(session.end(), 130);
  const StatusTable table = status();
  ASSERT_EQ(table.runs.size(), 3u);
  EXPECT_EQ(state_of_1(), "stopped");
  EXPECT_EQ(table.missing, std::vector<int64_t>{3});
  EXPECT_EQ(table.runs[0].records.value() % 8, 0) << "a part has whole windows";
  EXPECT_LT(table.runs[1].rows + table.runs[1].rejects, table.runs[1].records.value());
  EXPECT_GT(table.usd(), 0);
  const std::string text = status_text(table, false);
  EXPECT_EQ(text.find("parts   4: 2 finished, 1 stopped, 1 not begun (3)\n"), 0u) << text;
  EXPECT_NE(text.find("rerun its command to resume"), std::string::npos) << text;
  for (const int i : {1, 3}) EXPECT_EQ(run_sheaf(scratch_, command(part(i))).exit_code, 0);
  std::string folders;
  for (int i = 0; i < 4; ++i) folders += " " + scratch_.path(fmt::format("parts/part-{}", i));
  ASSERT_EQ(
      run_sheaf(scratch_, "merge --exit-zero-on-rejects " + scratch_.path("parts/all") + folders).exit_code,
      0);
  const Ran ran = run_sheaf(scratch_, "status --json " + scratch_.path("parts") + folders);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const json all = json::parse(ran.out);
  EXPECT_EQ(all["rows"], 3920) << "the merge is not counted beside its parts";
  EXPECT_EQ(all["rejects"], 80);
  EXPECT_EQ(all["seconds_left"], 0);
  EXPECT_EQ(all["runs"].size(), 4u);
  EXPECT_EQ(run_sheaf(scratch_, "status " + scratch_.path("nowhere")).exit_code, 2);
  EXPECT_EQ(run_sheaf(scratch_, "status " + scratch_.path("model")).exit_code, 2);
}

TEST_F(WatchedRun, StatusOfADamagedPartHidesNoOther) {
  for (const char* i : {"0", "1"})
    EXPECT_EQ(run_sheaf(scratch_, command(fmt::format("--shard {}/2 --set output.path=", i) +
                                          scratch_.path(std::string("parts/") + i)))
                  .exit_code,
              1);
  scratch_.write("parts/1/manifest.json", "{");
  const StatusTable table = read_status({scratch_.path("parts")}, 0);
  ASSERT_EQ(std::ranges::count_if(table.runs, [](const RunStatus& run) { return !run.trouble.empty(); }), 1);
  EXPECT_NE(status_text(table, true).find("manifest.json"), std::string::npos);
}

}  // namespace
}  // namespace sheaf

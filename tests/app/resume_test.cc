// Jobs that are stopped in every way the program can be stopped from outside, and resumed.
#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>

#include "tests/app/running.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::run_sheaf;
using test::Running;
using test::stop_at_group;

constexpr int kRows = 1200;

class Resume : public testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (int i = 0; i < kRows; ++i)
      lines +=
          i == 5 ? "{broken\n"
                 : json{{"n", i}, {"c", "Box " + std::to_string(i) + " holds tea."}, {"q", "What is in it?"}}
                           .dump() +
                       "\n";
    scratch_.write("corpus.jsonl", lines);
    // Answers are sampled, so that no two rows are alike.
    scratch_.write("job.yaml", "model: {path: " + test::make_tiny_model(scratch_) +
                                   ", chat: plain}\n"
                                   "input: {path: " +
                                   scratch_.path("corpus.jsonl") +
                                   ", id: n, context: c, question: q}\n"
                                   "task: {kind: ask, instruction: Tell}\n"
                                   "method: {name: ippd, max_value_tokens: 4, temperature: 1}\n"
                                   "engine: {device: cpu, window: 20}\n"
                                   "output: {path: " +
                                   scratch_.path("out") + ", rows_per_file: 400}\n");
  }

  std::string command(const std::string& more = "") const {
    return "run " + scratch_.path("job.yaml") + " --quiet " + more;
  }
  std::string to(const std::string& name) const { return "--set output.path=" + scratch_.path(name); }

  /// The files that must not depend on what happened on the way. Those left out tell groups of rows apart,
  /// which time has made.
  std::map<std::string, std::string> files(const std::string& folder) const {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path(folder))) {
      const std::string name = entry.path().filename();
      if (name != ".lock" && name != "journal" && !name.starts_with("report.") &&
          !name.starts_with("answers."))
        found[name] = read_text(entry.path());
    }
    return found;
  }

  /// Starts the job and kills it once it has made so many more groups of rows safe; how it ended.
  int kill_after(uint64_t groups, const std::string& folder, const std::string& more = "") const {
    Running job(command(to(folder) + more) + " 2>/dev/null", stop_at_group(groups));
    if (groups > 0) {
      EXPECT_TRUE(job.stopped()) << "the job ended before " << groups << " more groups";
    }
    job.send(SIGKILL);
    return job.end();
  }

  TempFolder scratch_;
};

TEST_F(Resume, AfterKillsAtRandomMomentsTheBytesAreThoseOfOneRun) {
  ASSERT_EQ(run_sheaf(scratch_, command(to("whole"))).exit_code, 1);
  const auto expected = files("whole");
  ASSERT_EQ(expected.size(), 6u) << "three rows files, rejects, manifest, _SUCCESS";
  std::mt19937 random(7);
  for (int round = 0; round < 3; ++round) {
    const std::string folder = "killed" + std::to_string(round);
    // Sixty groups in all; without one the job is killed as it starts.
    for (int i = 0; i < 2; ++i) ASSERT_EQ(kill_after(random() % 25, folder), 128 + SIGKILL);
    const Ran last = run_sheaf(scratch_, command(to(folder)));
    ASSERT_EQ(last.exit_code, 1) << last.err;
    EXPECT_EQ(files(folder), expected);
  }
}

TEST_F(Resume, AModelThatChangesDuringARunIsNoticed) {
  const std::string path = scratch_.path("model/model-00001-of-00001.safetensors");
  ASSERT_EQ(run_sheaf(scratch_, command(to("whole"))).exit_code, 1);
  for (const bool in_place : {false, true}) {
    const std::string out = in_place ? "over" : "renamed";
    Running job(command(to(out)) + " 2>" + scratch_.path("err"), stop_at_group(10));
    ASSERT_TRUE(job.stopped());
    // A new file of the same name leaves the one that the run has open as it is.
    const std::string old = path + ".old";
    std::filesystem::copy_file(path, old);
    if (!in_place) std::filesystem::rename(old, path);
    {
      std::fstream weights(path, std::ios::in | std::ios::out | std::ios::binary);
      ASSERT_TRUE(weights.seekp(-2, std::ios::end));
      weights.put(in_place ? '\x12' : '\x11');
    }
    EXPECT_EQ(job.end(), in_place ? 2 : 1) << read_text(scratch_.path("err"));
    if (in_place) {
      EXPECT_NE(read_text(scratch_.path("err")).find("was written over while sheaf computed with it"),
                std::string::npos);
      EXPECT_FALSE(std::filesystem::exists(scratch_.path("over/_SUCCESS")));
    } else {
      EXPECT_EQ(files("renamed"), files("whole"));
    }
  }
}

TEST_F(Resume, AFinishedRunCanBeVerified) {
  const std::string verify = "verify-run " + scratch_.path("out");
  EXPECT_EQ(run_sheaf(scratch_, verify).exit_code, 2) << "there is none";
  ASSERT_EQ(kill_after(10, "out"), 128 + SIGKILL);
  const Ran unfinished = run_sheaf(scratch_, verify);
  EXPECT_EQ(unfinished.exit_code, 2);
  EXPECT_NE(unfinished.err.find("is not a finished run"), std::string::npos) << unfinished.err;
  ASSERT_EQ(run_sheaf(scratch_, command(to("out"))).exit_code, 1);
  const Ran whole = run_sheaf(scratch_, verify);
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_NE(whole.out.find("whole: 1199 rows, 1 reject"), std::string::npos) << whole.out;
  const std::string rows = scratch_.path("out/rows-00001.jsonl"), good = read_text(rows);
  for (const std::string& bad : {std::string(), good.substr(1), "x" + good.substr(1)}) {
    std::ofstream(rows, std::ios::binary) << bad;
    const Ran damaged = run_sheaf(scratch_, verify);
    EXPECT_EQ(damaged.exit_code, 2);
    EXPECT_NE(damaged.out.find("rows-00001.jsonl: the file"), std::string::npos) << damaged.out;
  }
  std::filesystem::remove(rows);
  EXPECT_NE(run_sheaf(scratch_, verify).out.find("rows-00001.jsonl: the file is missing"), std::string::npos);
  std::ofstream(rows, std::ios::binary) << good;
  EXPECT_EQ(run_sheaf(scratch_, verify).exit_code, 0);
}

TEST_F(Resume, TablesResumeToTheSameBytes) {
  for (const std::string name : {"parquet", "arrow"}) {
    const std::string format = " --set output.format=" + name, whole = "whole-" + name,
                      killed = "killed-" + name;
    ASSERT_EQ(run_sheaf(scratch_, command(to(whole) + format)).exit_code, 1);
    ASSERT_EQ(kill_after(25, killed, format), 128 + SIGKILL);
    ASSERT_EQ(run_sheaf(scratch_, command(to(killed) + format)).exit_code, 1);
    EXPECT_EQ(files(killed), files(whole));
    EXPECT_EQ(files(whole).count("rows-00002." + name), 1u);
  }
}

TEST_F(Resume, AStoppedRunResumesToTheSameBytes) {
  const std::string more = to("out") + " --set engine.window=1 --set method.max_value_tokens=60";
  Running job(command(more) + " 2>" + scratch_.path("err"), stop_at_group(2));
  ASSERT_TRUE(job.stopped());
  job.send(SIGTERM);
  EXPECT_EQ(job.end(), 130);
  EXPECT_NE(read_text(scratch_.path("err")).find("rerun the same command to resume"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("out/_SUCCESS")));
  // Another job may not resume here, and says why.
  const Ran other = run_sheaf(scratch_, command(more + " --set method.seed=4"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("method.seed was 0 and is now 4"), std::string::npos) << other.err;
  // Nor may the same one once its corpus has changed.
  std::ofstream(scratch_.path("corpus.jsonl"), std::ios::app) << "{}\n";
  const Ran changed = run_sheaf(scratch_, command(more));
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_NE(changed.err.find("the corpus grew: corpus.jsonl grew from"), std::string::npos) << changed.err;
}

TEST_F(Resume, RecordsAreCommittedBeforeTheirWindowIsComplete) {
  // One window, and long answers one after the other.
  const std::string more = " --set engine.window=100000 --set method.max_value_tokens=400";
  ASSERT_EQ(run_sheaf(scratch_, command(to("whole") + more)).exit_code, 1);
  // A group, which nothing but time has ended.
  Running job(command(to("out") + more + " --set engine.prompts=1") + " 2>" + scratch_.path("err"),
              stop_at_group(1));
  ASSERT_TRUE(job.stopped());
  job.send(SIGINT);
  ASSERT_EQ(job.end(), 130);
  const std::string rows = read_text(scratch_.path("out/rows-00000.jsonl.part"));
  const auto count = std::count(rows.begin(), rows.end(), '\n');
  EXPECT_GT(count, 0);
  EXPECT_LT(count, kRows - 1);
  EXPECT_NE(read_text(scratch_.path("err")).find(std::to_string(count) + " rows are safe"),
            std::string::npos);
  const Ran resumed = run_sheaf(scratch_, command(to("out") + more));
  ASSERT_EQ(resumed.exit_code, 1) << resumed.err;
  EXPECT_EQ(files("out"), files("whole"));
}

TEST_F(Resume, AFileSizeLimitIsReportedAsAFullDisk) {
  ASSERT_EQ(run_sheaf(scratch_, command(to("whole"))).exit_code, 1);
  // No file may reach the size of the largest, so that some groups are committed before.
  uintmax_t most = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch_.path("whole")))
    if (!entry.path().filename().string().starts_with("report."))
      most = std::max(most, entry.file_size() / 1024);
  const std::string line = "ulimit -f " + std::to_string(most) + "; exec " + SHEAF_BINARY + " " +
                           command(to("full")) + " 2>" + scratch_.path("err");
  EXPECT_EQ(test::exit_code_of(std::system(("bash -c '" + line + "'").c_str())), 3);
  const std::string err = read_text(scratch_.path("err"));
  EXPECT_NE(err.find(": sheaf cannot write it: File too large"), std::string::npos) << err;
  EXPECT_NE(err.find("rerun the same command to resume"), std::string::npos) << err;
  const std::string journal = read_text(scratch_.path("full/journal"));
  EXPECT_GT(std::count(journal.begin(), journal.end(), '\n'), 2) << "groups were committed before";
  const Ran after = run_sheaf(scratch_, command(to("full")));
  EXPECT_EQ(after.exit_code, 1) << after.err;
  EXPECT_EQ(files("full"), files("whole"));
}

TEST_F(Resume, ShardsMergeToTheWhole) {
  ASSERT_EQ(run_sheaf(scratch_, command(to("whole"))).exit_code, 1);
  std::string folders;
  for (int i = 0; i < 2; ++i) {
    const std::string name = "shard" + std::to_string(i);
    const Ran ran = run_sheaf(scratch_, command(to(name) + " --shard " + std::to_string(i) + "/2"));
    ASSERT_EQ(ran.exit_code, i == 0 ? 1 : 0) << ran.err;
    folders += " " + scratch_.path(name);
  }
  EXPECT_EQ(run_sheaf(scratch_, "merge " + scratch_.path("gap") + " " + scratch_.path("shard1")).exit_code,
            2);
  const Ran merged = run_sheaf(scratch_, "merge " + scratch_.path("merged") + folders);
  ASSERT_EQ(merged.exit_code, 1) << merged.err;
  const auto rows_of = [&](const std::string& folder) {
    std::string rows;
    for (const auto& [name, text] : files(folder))
      if (name.starts_with("rows-")) rows += text;
    return rows;
  };
  EXPECT_EQ(rows_of("merged"), rows_of("whole"));
  EXPECT_EQ(files("merged")["rejects.jsonl"], files("whole")["rejects.jsonl"]);
  // The merged folder is that of the whole job, and done.
  const Ran again = run_sheaf(scratch_, "run " + scratch_.path("job.yaml") + " " + to("merged"));
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("is already finished"), std::string::npos) << again.err;
  EXPECT_EQ(run_sheaf(scratch_, command("--shard 2/2")).exit_code, 2);
}

}  // namespace
}  // namespace sheaf

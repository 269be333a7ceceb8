// What `sheaf eval` itself writes, under every fault: after each one it is run again, and the files it ends
// with are those of an evaluation that nothing happened to. (Its runs have tests/io/run_folder_test.cc.)
#include <gtest/gtest.h>
#include <random>

#include "io/eval/evaluation.h"
#include "tests/app/running.h"
#include "tests/files.h"
#include "tests/io/faulty_files.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_sheaf;
using Folder = std::map<std::string, std::string>;

constexpr FaultKind kKinds[] = {FaultKind::error, FaultKind::short_write, FaultKind::kill_before,
                                FaultKind::kill_in_write, FaultKind::kill_after};
constexpr const char* kTables[] = {"table.md", "table.csv", "table.json", "table.html", "differences.html"};

class EvalFaults : public testing::Test {
 protected:
  std::string out(const std::string& name = "") const {
    return scratch_.path(name.empty() ? "out" : "out/" + name);
  }

  /// The exit code; nothing where it was killed or its disk was full.
  std::optional<int> evaluate(FileLayer& files, bool restart = false) const {
    const EvalSettings settings{.restart = restart, .log_samples = true};
    const Eval eval = read_eval(scratch_.path("eval.yaml"), {});
    RunListener nobody;
    Evaluation evaluation(files, settings, eval, read_grid(eval, {}), nobody);
    try {
      return evaluation.run().exit_code;
    } catch (const Killed&) {
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::fatal) << error.what();
    }
    return std::nullopt;
  }

  /// Tables in the folder are all of this evaluation or all those that were there before ("old").
  void check_tables(const Folder& expected) const {
    int old = 0, own = 0;
    for (const char* name : kTables) {
      if (!file_size(out(name))) continue;
      const std::string text = *read_whole(out(name));
      ++(text == "old" ? old : own);
      ASSERT_TRUE(text == "old" || text == expected.at(name)) << name << "\n" << text;
    }
    ASSERT_TRUE(old == 0 || own == 0) << old << " old ones beside " << own << " new ones";
  }

  TempFolder scratch_{quick_place()};
  const std::string model_ = test::make_tiny_model(scratch_);
};

/// Two methods that extract, scored, logged and judged. The runs are finished once; faults hit the rest.
class JudgedEvalFaults : public EvalFaults {
 protected:
  void SetUp() override {
    scratch_.write("schema.yaml", "categories: {Tea: [{name: Brand}, {name: Weight}]}\n");
    std::string lines;
    for (const char* brand : {"Arn", "Birch"})
      lines += json{{"sku", brand},
                    {"title", std::string(brand) + " tea"},
                    {"category", "Tea"},
                    {"gold", {{"Brand", {brand}}, {"Weight", {"n/a"}}}}}
                   .dump() +
               "\n";
    const std::string corpus = scratch_.write("teas.jsonl", lines);
    const std::string job = scratch_.write(
        "job.yaml",
        "model: {path: none}\ninput: {path: none.jsonl, id: sku, category: category, document: title}\n"
        "task: {kind: extract, schema: " +
            scratch_.path("schema.yaml") +
            "}\nmethod: {name: hpd, max_value_tokens: 4}\nengine: {device: cpu}\noutput: {path: none}\n");
    scratch_.write("eval.yaml", "name: Teas\nbaseline: standard\noutput: {path: " + out() +
                                    "}\nmodels: [{name: tiny, path: " + model_ +
                                    ", chat: plain}]\ndatasets: [{name: teas, job: " + job +
                                    ", path: " + corpus + ", metric: attributes, judge: {model: " + model_ +
                                    "}}]\nmethods: [{name: standard}, {name: hpd}]\n");
    ASSERT_EQ(evaluate(quick_files()), 0);
    expected_ = written();
    ASSERT_EQ(expected_.size(), 9u);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names(std::begin(kTables), std::end(kTables));
    for (const char* method : {"standard", "hpd"}) {
      names.push_back(std::string("tiny/teas/") + method + "/samples.jsonl");
      names.push_back(std::string("tiny/teas/") + method + "/judge/requests.jsonl");
    }
    return names;
  }
  /// What the evaluation wrote beside its runs, staged or not.
  Folder written() const {
    Folder found;
    for (const std::string& name : names())
      for (const char* ending : {"", ".part"})
        if (const auto text = read_whole(out(name + ending))) found[name + ending] = *text;
    return found;
  }
  /// Another evaluation's table, and the finished runs.
  void fresh() const {
    for (const auto& [name, text] : written()) std::filesystem::remove(out(name));
    for (const char* name : kTables) scratch_.write(std::string("out/") + name, "old");
  }
  void check_and_finish(bool done) const {
    ASSERT_NO_FATAL_FAILURE(check_tables(expected_));
    ASSERT_TRUE(!done || written() == expected_) << "what was through is not any more";
    ASSERT_EQ(evaluate(quick_files()), 0);
    ASSERT_EQ(written(), expected_);
  }

  Folder expected_;
};

TEST_F(JudgedEvalFaults, ResumesAfterAFaultAtEveryOperation) {
  TriedStates tried;
  for (FaultKind kind : kKinds) {
    int faults = 0;
    for (int at = 1;; ++at) {
      SCOPED_TRACE("operation " + std::to_string(at) + ", kind " + std::to_string(static_cast<int>(kind)));
      fresh();
      FaultyFiles files(kind, at);
      const bool done = evaluate(files).has_value();
      if (done || tried.is_new(out())) {
        ASSERT_NO_FATAL_FAILURE(check_and_finish(done));
      }
      if (done) break;
      ++faults;
    }
    EXPECT_GT(faults, 50);
  }
}

TEST_F(JudgedEvalFaults, ResumesAfterPowerLossAtEveryOperation) {
  TriedStates tried;
  int losses = 0;
  for (bool done = false; !done; ++losses) {
    fresh();
    PowerLossFiles files(out(), losses + 1);
    done = evaluate(files).has_value();
    for (uint32_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE("operation " + std::to_string(losses + 1) + ", seed " + std::to_string(seed));
      files.lose_power(seed);
      if (done || tried.is_new(out())) {
        ASSERT_NO_FATAL_FAILURE(check_and_finish(done));
      }
    }
  }
  EXPECT_GT(losses, 50);
}

TEST_F(JudgedEvalFaults, ARestartThatIsKilledLeavesNoTableOfTheRunsThatAreGone) {
  FaultyFiles files(FaultKind::kill_before, 8);  // after the folder, five files and a sync
  EXPECT_FALSE(evaluate(files, true));
  for (const char* name : kTables) EXPECT_FALSE(file_size(out(name))) << name;
  EXPECT_EQ(evaluate(quick_files()), 0);
  for (const char* name : kTables) EXPECT_TRUE(file_size(out(name))) << name;
}

/// Everything a table says but how long it took.
json untimed(json table) {
  for (json& row : table.at("rows"))
    for (const char* key : {"seconds", "throughput", "speedup"}) row.erase(key);
  return table;
}

TEST_F(JudgedEvalFaults, ResumesAfterKillsAtRandomMoments) {
  std::filesystem::remove_all(out());
  std::mt19937 random(1);
  int kills = 0;
  for (int i = 0; i < 20; ++i) {
    // Without a sync to wait for it is killed as it starts.
    const int64_t syncs = static_cast<int64_t>(random() % 30);
    test::Running program("eval " + scratch_.path("eval.yaml") + " --quiet --log-samples",
                          test::stop_at_sync(syncs, ""));
    if (syncs > 0) program.stopped();
    program.send(SIGKILL);
    const int code = program.end();
    ASSERT_TRUE(code == 128 + SIGKILL || code == 0) << code;
    kills += code != 0;
    if (code == 0) std::filesystem::remove_all(out());
  }
  EXPECT_GT(kills, 5);
  ASSERT_EQ(evaluate(quick_files()), 0);
  Folder found = written();
  EXPECT_EQ(untimed(json::parse(found["table.json"])), untimed(json::parse(expected_["table.json"])));
  for (const char* method : {"standard", "hpd"})
    for (const char* name : {"/samples.jsonl", "/judge/requests.jsonl"}) {
      const std::string path = std::string("tiny/teas/") + method + name;
      EXPECT_EQ(found[path], expected_[path]) << path;
    }
}

TEST_F(JudgedEvalFaults, ASecondProcessIsRefused) {
  const auto lock = real_files().lock(out());
  const Ran ran = run_sheaf(scratch_, "eval " + scratch_.path("eval.yaml"));
  EXPECT_EQ(ran.exit_code, 75);
  EXPECT_NE(ran.err.find("another process is using this folder"), std::string::npos) << ran.err;
}

TEST_F(JudgedEvalFaults, TheJudgeIsAskedAgainWhereValuesChanged) {
  const std::string requests = out("tiny/teas/hpd/judge/requests.jsonl"),
                    judged = out("tiny/teas/hpd/judge/run/journal"),
                    rows = out("tiny/teas/hpd/rows-00000.jsonl");
  const auto time = std::filesystem::last_write_time(requests);
  const std::string journal = read_text(judged);
  ASSERT_EQ(evaluate(quick_files()), 0);
  EXPECT_EQ(std::filesystem::last_write_time(requests), time) << "it is the corpus of a finished run";
  EXPECT_EQ(read_text(judged), journal);

  // As a restart leaves it that was killed between a run and its judgement.
  std::string text = read_text(rows);
  const size_t value = text.find("\"Brand\":\"");
  ASSERT_NE(value, std::string::npos) << text;
  char& letter = text[value + 9];
  ASSERT_NE(letter, '"') << text;
  letter = letter == 'x' ? 'y' : 'x';
  scratch_.write("out/tiny/teas/hpd/rows-00000.jsonl", text);
  ASSERT_EQ(evaluate(quick_files()), 0);
  EXPECT_NE(read_text(judged), journal);
}

TEST_F(JudgedEvalFaults, AnIncompleteReportIsRefused) {
  for (const std::string path : {"tiny/teas/hpd/report.json", "tiny/teas/hpd/judge/run/report.json"}) {
    const auto refused = [&] {
      const Ran ran = run_sheaf(scratch_, "eval " + scratch_.path("eval.yaml"));
      EXPECT_EQ(ran.exit_code, 2) << ran.err;
      EXPECT_NE(ran.err.find(path), std::string::npos) << ran.err;
      EXPECT_NE(ran.err.find("--restart"), std::string::npos) << ran.err;
    };
    const std::string report = read_text(out(path));
    json without = json::parse(report);
    without["seconds"].erase("open");
    for (const std::string& damaged : {std::string(), report.substr(0, report.size() / 2),
                                       std::string(report.size(), '\0'), std::string("{}"), without.dump()}) {
      scratch_.write("out/" + path, damaged);
      refused();
    }
    std::filesystem::remove(out(path));
    refused();
    scratch_.write("out/" + path, report);
  }
}

/// Rows of given lengths. What was measured once must stay; what was not is measured again.
class TimedEvalFaults : public EvalFaults {
 protected:
  void SetUp() override {
    scratch_.write("eval.yaml",
                   "name: Lengths\nbaseline: apart\noutput: {path: " + out() +
                       "}\nmodels: [{name: tiny, path: " + model_ +
                       "}]\ndatasets: [{name: b2, set: {engine.device: cpu}, lengths: {documents: 2, "
                       "document_tokens: 9, answer_tokens: 2, runs: 1}}]\n"
                       "methods: [{label: apart, name: standard}, {name: ippd, documents: 1}]\n");
  }
  Folder timings() const {
    Folder found;
    for (const char* method : {"apart", "ippd"})
      if (const auto text = read_whole(out(std::string("tiny/b2/") + method + "/timing.json")))
        found[method] = *text;
    return found;
  }
  /// Every cell once, with the figures of its measurement.
  void check_table() const {
    const json rows = json::parse(read_text(out("table.json"))).at("rows");
    const Folder measured = timings();
    ASSERT_EQ(rows.size(), 2u);
    ASSERT_EQ(measured.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(rows[i].at("method"), i == 0 ? "apart" : "ippd");
      ASSERT_EQ(rows[i].at("seconds"), json::parse(measured.at(rows[i].at("method"))).at("seconds"));
    }
  }
  void check_and_finish(bool done) const {
    if (done || file_size(out("table.json"))) {
      ASSERT_NO_FATAL_FAILURE(check_table());
    }
    const Folder before = timings();
    ASSERT_EQ(evaluate(quick_files()), 0);
    ASSERT_NO_FATAL_FAILURE(check_table());
    const Folder now = timings();
    for (const auto& [method, text] : before) ASSERT_EQ(now.at(method), text) << "measured again";
  }
};

TEST_F(TimedEvalFaults, ResumesAfterAFaultAtEveryOperation) {
  TriedStates tried;
  for (FaultKind kind : kKinds) {
    int faults = 0;
    for (int at = 1;; ++at) {
      SCOPED_TRACE("operation " + std::to_string(at) + ", kind " + std::to_string(static_cast<int>(kind)));
      std::filesystem::remove_all(out());
      FaultyFiles files(kind, at);
      const bool done = evaluate(files).has_value();
      if (done || tried.is_new(out())) {
        ASSERT_NO_FATAL_FAILURE(check_and_finish(done));
      }
      if (done) break;
      ++faults;
    }
    EXPECT_GT(faults, 30);
  }
}

TEST_F(TimedEvalFaults, ResumesAfterPowerLossAtEveryOperation) {
  TriedStates tried;
  int losses = 0;
  for (bool done = false; !done; ++losses) {
    std::filesystem::remove_all(out());
    PowerLossFiles files(out(), losses + 1);
    done = evaluate(files).has_value();
    for (uint32_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE("operation " + std::to_string(losses + 1) + ", seed " + std::to_string(seed));
      files.lose_power(seed);
      if (done || tried.is_new(out())) {
        ASSERT_NO_FATAL_FAILURE(check_and_finish(done));
      }
    }
  }
  EXPECT_GT(losses, 30);
}

TEST_F(TimedEvalFaults, ThereIsATableWhereNothingCouldBeMeasured) {
  const Ran ran = run_sheaf(scratch_, "eval " + scratch_.path("eval.yaml") + " --model tiny=olmo-2-32b");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(read_text(out("table.md")).find("not measured: the weights do not fit"), std::string::npos);
  EXPECT_EQ(ran.out.find("Measured on"), std::string::npos) << ran.out;
}

TEST_F(TimedEvalFaults, DamagedTimingsAreMeasuredAgain) {
  ASSERT_EQ(evaluate(quick_files()), 0);
  const std::string path = "out/tiny/b2/ippd/timing.json", timing = read_text(scratch_.path(path));
  std::vector<std::string> damaged = {"", timing.substr(0, timing.size() / 2),
                                      std::string(timing.size(), '\0')};
  for (const json& seconds : {json("soon"), json(0), json(-1.5), json()}) {
    json changed = json::parse(timing);
    changed["seconds"] = seconds;
    damaged.push_back(changed.dump());
  }
  json changed = json::parse(timing);
  changed.erase("seconds");
  damaged.push_back(changed.dump());
  for (const std::string& text : damaged) {
    scratch_.write(path, text);
    const Ran ran = run_sheaf(scratch_, "eval " + scratch_.path("eval.yaml"));
    ASSERT_EQ(ran.exit_code, 0) << ran.err << text;
    ASSERT_NO_FATAL_FAILURE(check_table()) << text;
  }
}

}  // namespace
}  // namespace sheaf

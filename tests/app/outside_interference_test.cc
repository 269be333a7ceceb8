// What other people and programs do to a run: signals, folders that are deleted or shared, files that are
// pipes, limits, and JSON that is made to overflow a stack.
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/app/running.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_sheaf;
using test::Running;

namespace fs = std::filesystem;

const std::string kDeep(1'000'000, '[');

class OutsideInterference : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    write_corpus(60);
    scratch_.write("job.yaml", "model: {path: " + model_ +
                                   ", chat: plain}\ninput: {path: " + scratch_.path("corpus.jsonl") +
                                   ", id: n, context: c, question: q}\n"
                                   "task: {kind: ask, instruction: Tell}\n"
                                   "method: {name: ippd, max_value_tokens: 4, temperature: 1}\n"
                                   "engine: {device: cpu, window: 10, threads: 1}\noutput: {path: " +
                                   scratch_.path("out") + "}\n");
  }

  void write_corpus(int rows) const {
    std::string lines;
    for (int i = 0; i < rows; ++i)
      lines +=
          json{{"n", i}, {"c", "Box " + std::to_string(i) + " holds tea."}, {"q", "What?"}}.dump() + "\n";
    scratch_.write("corpus.jsonl", lines);
  }

  std::string command(const std::string& more = "") const {
    return "run " + scratch_.path("job.yaml") + " " + more;
  }
  std::string set(const std::string& key, const std::string& name) const {
    return " --set " + key + "=" + scratch_.path(name);
  }

  /// A run in a process of its own that stops itself after two groups, with most of its records to come.
  std::unique_ptr<Running> half_a_run(const std::string& before = "") const {
    auto run =
        std::make_unique<Running>(command("--quiet --set engine.window=1 --set method.max_value_tokens=30") +
                                      " 2>" + scratch_.path("err"),
                                  before + test::stop_at_group(2));
    EXPECT_TRUE(run->stopped()) << read_text(scratch_.path("err"));
    return run;
  }

  /// The job with a library that changes the machine.
  int preloaded(const std::string& library, const std::string& environment = "") const {
    const std::string line = "ASAN_OPTIONS=verify_asan_link_order=0 " + environment +
                             " LD_PRELOAD=" + library + " " + SHEAF_BINARY + " " + command() + " >" +
                             scratch_.path("stdout") + " 2>" + scratch_.path("err");
    return test::exit_code_of(std::system(line.c_str()));
  }

  /// Exit code 2 and a message with these words.
  static void expect_refusal(const Ran& ran, const std::vector<std::string>& words) {
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    for (const std::string& word : words) EXPECT_NE(ran.err.find(word), std::string::npos) << ran.err;
  }

  TempFolder scratch_;
  std::string model_;
};

TEST_F(OutsideInterference, EverySignalThatAsksToStopEndsWith130AndSavesProgress) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    fs::remove_all(scratch_.path("out"));
    const auto run = half_a_run();
    run->send(number);
    EXPECT_EQ(run->end(), 130) << strsignal(number);
    EXPECT_NE(read_text(scratch_.path("err")).find("interrupted"), std::string::npos);
    EXPECT_TRUE(fs::exists(scratch_.path("out/progress.json"))) << "what was counted is saved";
  }
}

TEST_F(OutsideInterference, ASecondSignalEndsTheRunAtOnceWithTheSameCode) {
  const auto run = half_a_run();
  run->send(SIGTERM);
  run->send(SIGHUP);
  EXPECT_EQ(run->end(), 130);
}

TEST_F(OutsideInterference, SignalsIgnoredFromTheStartStayIgnored) {
  const auto run = half_a_run("trap '' HUP INT; ");
  run->send(SIGHUP);
  run->send(SIGINT);
  EXPECT_EQ(run->end(), 0) << "it runs to its end";
}

TEST_F(OutsideInterference, ARunWhoseFolderWasReplacedFails) {
  const auto first = half_a_run();
  fs::remove_all(scratch_.path("out"));
  const auto second = half_a_run();
  second->send(SIGTERM);
  EXPECT_EQ(second->end(), 130);
  const std::string journal = read_text(scratch_.path("out/journal"));
  EXPECT_EQ(first->end(), 2);
  EXPECT_NE(read_text(scratch_.path("err")).find("deleted or replaced"), std::string::npos);
  EXPECT_EQ(read_text(scratch_.path("out/journal")), journal);
  EXPECT_FALSE(fs::exists(scratch_.path("out/_SUCCESS")));
}

TEST_F(OutsideInterference, FilesOfOthersAreNeverDeleted) {
  fs::create_directories(scratch_.path("out"));
  scratch_.write("out/report.json", "mine");
  for (const char* more : {"", "--restart"}) {
    expect_refusal(run_sheaf(scratch_, command(more)), {scratch_.path("out"), "report.json", "output.path"});
    EXPECT_EQ(read_text(scratch_.path("out/report.json")), "mine");
    EXPECT_FALSE(fs::exists(scratch_.path("out/.lock")));
  }
}

TEST_F(OutsideInterference, RowsAmongTheCorpusAreRefusedBeforeAnythingIsComputed) {
  fs::create_directories(scratch_.path("in/deep/er"));
  fs::create_directories(scratch_.path("elsewhere"));
  fs::copy_file(scratch_.path("corpus.jsonl"), scratch_.path("in/a.jsonl"));
  fs::copy_file(scratch_.path("corpus.jsonl"), scratch_.path("in/deep/a.jsonl"));
  fs::create_directory_symlink(scratch_.path("elsewhere"), scratch_.path("in/link"));
  const std::string folder = set("input.path", "in");
  for (const char* out : {"in", "in/out", "in/deep/er/out", "elsewhere/out", "in/link/x/y", "in/../in/z"})
    expect_refusal(run_sheaf(scratch_, command(folder + set("output.path", out))),
                   {"output.path", "outside"});
  for (const char* pattern : {"in/*/*.jsonl", "in/*/*", "i?/[d]eep/*.js*"})
    expect_refusal(run_sheaf(scratch_, command(" --set 'input.path=" + scratch_.path(pattern) +
                                               "' --set input.format=jsonl" + set("output.path", "in/deep"))),
                   {"output.path", "outside"});
  EXPECT_FALSE(fs::exists(scratch_.path("in/out")));
  // What a look for the corpus passes over is no trouble, neither now nor when the run is repeated.
  for (const char* out : {"in/_out", "in/.out/rows", "in-beside"})
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(run_sheaf(scratch_, command("--quiet " + folder + set("output.path", out))).exit_code, 0)
          << out;
  const std::string files = " --set 'input.path=" + scratch_.path("in/a*.jsonl") + "'";
  EXPECT_EQ(run_sheaf(scratch_, command("--quiet " + files + set("output.path", "in/sub"))).exit_code, 0);
}

TEST_F(OutsideInterference, PipesAndDevicesAreRefusedWithoutWaiting) {
  const std::string pipe = scratch_.path("pipe.jsonl");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string what = "not a regular file";
  expect_refusal(run_sheaf(scratch_, command(set("input.path", "pipe.jsonl"))), {pipe, "named pipe", what});
  expect_refusal(run_sheaf(scratch_, command("--set input.path=/dev/zero --set input.format=jsonl")),
                 {"/dev/zero", "device", what});
  expect_refusal(run_sheaf(scratch_, command("--set input.path=/dev/zero --set input.format=parquet")),
                 {"/dev/zero", "device", what});
  expect_refusal(run_sheaf(scratch_, "convert squad /dev/zero " + scratch_.path("converted.jsonl")),
                 {"/dev/zero", "device", what});
  expect_refusal(run_sheaf(scratch_, "inspect " + pipe), {pipe, what});
  expect_refusal(run_sheaf(scratch_, "score --metric squad --gold " + pipe + " --pred " + pipe),
                 {pipe, what});
  EXPECT_EQ(run_sheaf(scratch_, "run " + pipe).exit_code, 2) << "a job file without a writer is empty";
  EXPECT_EQ(run_sheaf(scratch_, command("--quiet --log " + pipe)).exit_code, 2) << "nobody reads the log";
  fs::create_directories(scratch_.path("in"));
  ASSERT_EQ(mkfifo(scratch_.path("in/a.jsonl").c_str(), 0600), 0);
  expect_refusal(run_sheaf(scratch_, command(set("input.path", "in"))), {"in/a.jsonl", what});
  for (const char* name : {"tokenizer.json", "config.json", "generation_config.json"}) {
    const std::string path = model_ + "/" + name;
    fs::rename(scratch_.path("model"), scratch_.path("kept"));
    fs::copy(scratch_.path("kept"), scratch_.path("model"));
    fs::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    expect_refusal(run_sheaf(scratch_, command()), {name});
    fs::remove_all(scratch_.path("model"));
    fs::rename(scratch_.path("kept"), scratch_.path("model"));
  }
  // A pipe or a device of the name that a result should get stays, and is refused before the work.
  ASSERT_EQ(run_sheaf(scratch_, command("--quiet")).exit_code, 0);
  const std::string page = scratch_.path("page.html");
  ASSERT_EQ(mkfifo(page.c_str(), 0600), 0);
  expect_refusal(run_sheaf(scratch_, "report " + scratch_.path("out") + " --out " + page), {page, what});
  expect_refusal(run_sheaf(scratch_, "estimate " + scratch_.path("job.yaml") + " --html " + page),
                 {page, what});
  expect_refusal(run_sheaf(scratch_, "plan " + scratch_.path("job.yaml") + " --dump 1 --dump-to " + page),
                 {page, what});
  expect_refusal(run_sheaf(scratch_, "bench --calibrate " + page), {page, what});
  expect_refusal(run_sheaf(scratch_, "plan " + scratch_.path("job.yaml") + " --dump 1 --dump-to " +
                                         scratch_.path("none/x.json")),
                 {"none/x.json", "does not exist; create it first"});
  EXPECT_TRUE(fs::is_fifo(scratch_.path("page.html")));
}

TEST_F(OutsideInterference, FileNamesThatAreNotUtf8AreRead) {
  fs::create_directories(scratch_.path("in"));
  fs::copy_file(scratch_.path("corpus.jsonl"), scratch_.path("in/\xff\x1b.jsonl"));
  scratch_.write("in/b.jsonl", "{broken\n");
  const std::string line = command("--quiet" + set("input.path", "in"));
  for (int i = 0; i < 2; ++i) {
    const Ran ran = run_sheaf(scratch_, line);
    EXPECT_EQ(ran.exit_code, 1) << ran.err;
    EXPECT_TRUE(fs::exists(scratch_.path("out/_SUCCESS")));
  }
  fs::rename(scratch_.path("in/\xff\x1b.jsonl"), scratch_.path("in/\xfd.jsonl"));
  expect_refusal(run_sheaf(scratch_, line), {"\\xff\\x1b.jsonl is gone"});
}

TEST_F(OutsideInterference, AJobFromAPipeWithAWriterIsRead) {
  const std::string line = std::string("bash -c '") + SHEAF_BINARY + " run --quiet <(sleep 0.1; cat " +
                           scratch_.path("job.yaml") + ")'";
  EXPECT_EQ(test::exit_code_of(std::system(line.c_str())), 0);
}

TEST_F(OutsideInterference, NestedOrTruncatedFilesBesideAModelAreRefusedByName) {
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json",
                           "model.safetensors.index.json"}) {
    const std::string path = "model/" + std::string(name);
    const bool there = fs::exists(scratch_.path(path));
    const std::string kept = there ? read_text(scratch_.path(path)) : "";
    for (const std::string& text : {kDeep, "{\"a\":" + kDeep, std::string("{\"eos_token_id\": [1,")}) {
      scratch_.write(path, text);
      expect_refusal(run_sheaf(scratch_, command()), {name});
    }
    if (there)
      scratch_.write(path, kept);
    else
      fs::remove(scratch_.path(path));
  }
  EXPECT_EQ(run_sheaf(scratch_, command("--quiet")).exit_code, 0);
}

TEST_F(OutsideInterference, NestedAnswersAndPredictionsAreRefusedByName) {
  const json row = {{"id", 1}, {"category", "c"}, {"gold", "{\"a\":" + kDeep}};
  const std::string gold = scratch_.write("gold.jsonl", row.dump() + "\n");
  const std::string extra = scratch_.write(
      "extra.jsonl", json{{"id", 1}, {"answers", {"x"}}, {"extra", "{\"a\":" + kDeep}}.dump() + "\n");
  const std::string good = scratch_.write("good.jsonl", "{\"id\": 1, \"answer\": \"x\"}\n");
  const std::string deep = scratch_.write("deep.json", "{\"1\":" + kDeep);
  const std::string lines = scratch_.write("deep.jsonl", "{\"id\": 1, \"answer\":" + kDeep + "\n");
  expect_refusal(run_sheaf(scratch_, "score --metric attributes --gold " + gold + " --pred " + good),
                 {"gold"});
  EXPECT_NE(run_sheaf(scratch_, "score --metric squad --gold " + extra + " --pred " + good).exit_code,
            128 + SIGSEGV);
  expect_refusal(run_sheaf(scratch_, "score --metric squad --gold " + extra + " --pred " + deep),
                 {"deep.json"});
  expect_refusal(run_sheaf(scratch_, "score --metric squad --gold " + extra + " --pred " + lines),
                 {"deep.jsonl"});
}

TEST_F(OutsideInterference, DamagedReportsAreNamedAndDoNotStopTheRun) {
  ASSERT_EQ(run_sheaf(scratch_, command("--quiet")).exit_code, 0);
  const json report = json::parse(read_text(scratch_.path("out/report.json")));
  json wrong = report;
  wrong["value_tokens"]["bin_width"] = 0;
  for (const std::string& text : {std::string("{"), kDeep, std::string("[]"), wrong.dump()}) {
    scratch_.write("out/report.json", text);
    expect_refusal(run_sheaf(scratch_, "report " + scratch_.path("out")), {"out/report.json", "--restart"});
    expect_refusal(run_sheaf(scratch_, command("--json")), {"out/report.json"});
  }

  for (const std::string& text :
       {std::string("{"), "{\"rows\":" + kDeep, std::string("{\"rows\": \"1\", \"rejects\": 0}"),
        json{{"rows", 10}, {"rejects", 0}, {"report", wrong}}.dump(),
        json{{"rows", 10}, {"rejects", 0}, {"report", {{"version", 2}, {"values", 3}}}}.dump()}) {
    fs::remove_all(scratch_.path("out"));
    const auto run = half_a_run();
    run->send(SIGTERM);
    ASSERT_EQ(run->end(), 130);
    scratch_.write("out/progress.json", text);
    expect_refusal(run_sheaf(scratch_, "report " + scratch_.path("out")), {"out/progress.json"});
    const Ran again = run_sheaf(scratch_, command("--set engine.window=1 --set method.max_value_tokens=30 "
                                                  "--max-rejects 0"));
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_NE(again.err.find("progress.json"), std::string::npos) << again.err;
  }
}

TEST_F(OutsideInterference, AMergeSurvivesAFullDiskForeignFilesAndWrongManifests) {
  std::string shards;
  for (int i = 0; i < 2; ++i) {
    const std::string name = "shard" + std::to_string(i);
    ASSERT_EQ(
        run_sheaf(scratch_, command("--quiet --shard " + std::to_string(i) + "/2" + set("output.path", name)))
            .exit_code,
        0);
    shards += " " + scratch_.path(name);
  }
  const std::string out = scratch_.path("merged");
  // A limit on file sizes is a full disk.
  const std::string limited = "ulimit -f 1; exec " + std::string(SHEAF_BINARY) + " merge " + out + shards +
                              " 2>" + scratch_.path("err");
  EXPECT_EQ(test::exit_code_of(std::system(("bash -c '" + limited + "'").c_str())), 3);
  EXPECT_NE(read_text(scratch_.path("err")).find("File too large"), std::string::npos);
  EXPECT_FALSE(fs::exists(out + "/_SUCCESS"));
  ASSERT_EQ(run_sheaf(scratch_, "merge " + out + shards).exit_code, 0);
  const auto written = fs::last_write_time(out + "/manifest.json");
  const Ran again = run_sheaf(scratch_, "merge " + out + shards);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.out.find("already merged: 60 rows"), std::string::npos) << again.out;
  EXPECT_EQ(fs::last_write_time(out + "/manifest.json"), written);

  // Another folder's files stay, and nothing is added to them.
  fs::create_directories(scratch_.path("theirs"));
  scratch_.write("theirs/notes.txt", "mine");
  expect_refusal(run_sheaf(scratch_, "merge " + scratch_.path("theirs") + shards), {"theirs", "notes.txt"});
  EXPECT_FALSE(fs::exists(scratch_.path("theirs/.lock")));
  json manifest = json::parse(read_text(scratch_.path("shard1/manifest.json")));
  manifest["files"][0]["bytes"] = "1";
  scratch_.write("shard1/manifest.json", manifest.dump());
  expect_refusal(run_sheaf(scratch_, "merge " + scratch_.path("fresh") + shards), {"shard1/manifest.json"});
  EXPECT_FALSE(fs::exists(scratch_.path("fresh")));
}

TEST_F(OutsideInterference, ClosedStandardStreamsDoNotReceiveRows) {
  const std::string job = scratch_.path("job.yaml");
  ASSERT_EQ(run_sheaf(scratch_, command("--quiet" + set("output.path", "whole"))).exit_code, 0);
  const auto closed = [&](const std::string& more, const std::string& streams) {
    const std::string line = std::string(SHEAF_BINARY) + " run " + job + " " + more + " " + streams;
    return test::exit_code_of(std::system(line.c_str()));
  };
  for (const char* streams : {"<&- >&- 2>&-", ">&- 2>&-", "2>&-", "<&-"}) {
    fs::remove_all(scratch_.path("out"));
    EXPECT_EQ(closed("", streams), 0) << streams;
    EXPECT_EQ(read_text(scratch_.path("out/rows-00000.jsonl")),
              read_text(scratch_.path("whole/rows-00000.jsonl")))
        << streams;
  }
  fs::remove_all(scratch_.path("out"));
  EXPECT_EQ(closed("--set input.path=-", "<&- 2>/dev/null"), 2) << "a corpus that is not there is not empty";
}

TEST_F(OutsideInterference, ThreadsThatCannotBeStartedEndTheRun) {
  SKIP_UNLESS(!test::kAddressSanitizer, test::Lacking::plain_memory,
              "the address sanitizer reserves terabytes");
  int too_many = 0;
  for (int kilobytes = 150'000; kilobytes <= 1'500'000; kilobytes += 150'000) {
    const auto run = [&](const std::string& arguments) {
      const std::string line = "ulimit -v " + std::to_string(kilobytes) + "; exec timeout -s KILL 500 " +
                               SHEAF_BINARY + " " + arguments + " >/dev/null 2>" + scratch_.path("err");
      return test::exit_code_of(std::system(("bash -c '" + line + "'").c_str()));
    };
    // Whether the libraries start at all is not sheaf's to say.
    if (run("--version") != 0) continue;
    const int code = run(command("--quiet --restart --threads 64"));
    const std::string err = read_text(scratch_.path("err"));
    EXPECT_TRUE(code == 0 || code == 3) << kilobytes << ": " << code << " " << err;
    too_many += err.find("threads could be started") != std::string::npos;
  }
  EXPECT_GT(too_many, 0);
}

TEST_F(OutsideInterference, LinksAreNotFollowedToFilesOfOthers) {
  const std::string victim = scratch_.write("victim", "mine");
  fs::create_directories(scratch_.path("out"));
  fs::create_symlink(victim, scratch_.path("out/.lock"));
  EXPECT_EQ(run_sheaf(scratch_, command()).exit_code, 2);
  EXPECT_EQ(read_text(victim), "mine");
  fs::remove(scratch_.path("out/.lock"));
  // A link that leads nowhere is no journal.
  fs::create_symlink(scratch_.path("nowhere"), scratch_.path("out/journal"));
  scratch_.write("out/report.json", "mine");
  expect_refusal(run_sheaf(scratch_, command()), {"out"});
  EXPECT_EQ(read_text(scratch_.path("out/report.json")), "mine");
  // Rows that are the corpus too would be gone with a restart.
  ASSERT_EQ(run_sheaf(scratch_, command("--quiet" + set("output.path", "rows"))).exit_code, 0);
  fs::create_symlink(scratch_.path("rows/rows-00000.jsonl"), scratch_.path("link.jsonl"));
  expect_refusal(run_sheaf(scratch_, command("--restart --set input.id=id --set input.context=answer --set "
                                             "input.question=answer" +
                                             set("input.path", "link.jsonl") + set("output.path", "rows"))),
                 {"output.path", "link.jsonl"});
  EXPECT_TRUE(fs::exists(scratch_.path("rows/rows-00000.jsonl")));
}

TEST_F(OutsideInterference, ACommandNeverOverwritesItsInput) {
  ASSERT_EQ(run_sheaf(scratch_, command("--quiet")).exit_code, 0);
  const std::string job = scratch_.path("job.yaml"), corpus = scratch_.path("corpus.jsonl");
  const std::string before = read_text(job) + read_text(corpus);
  expect_refusal(run_sheaf(scratch_, "plan " + job + " --dump 1 --dump-to " + corpus), {"corpus.jsonl"});
  expect_refusal(run_sheaf(scratch_, "plan " + job + " --dump 1 --dump-to " + job), {"job.yaml"});
  expect_refusal(run_sheaf(scratch_, command("--restart --log " + corpus)), {"corpus.jsonl"});
  expect_refusal(run_sheaf(scratch_, command("--restart --log " + scratch_.path("out/journal"))),
                 {"journal"});
  expect_refusal(
      run_sheaf(scratch_, "report " + scratch_.path("out") + " --out " + scratch_.path("out/journal")),
      {".html"});
  expect_refusal(run_sheaf(scratch_, "convert squad " + corpus + " " + corpus), {"corpus.jsonl"});
  EXPECT_EQ(read_text(job) + read_text(corpus), before);
}

TEST_F(OutsideInterference, AModelThatIsCutShortEndsTheRunWithItsName) {
  std::string weights;
  for (const auto& entry : fs::directory_iterator(model_))
    if (entry.path().extension() == ".safetensors") weights = entry.path();
  const auto run = half_a_run();
  fs::resize_file(weights, 0);
  const int code = run->end();
  const std::string err = read_text(scratch_.path("err"));
  // The weights may have been copied by then.
  EXPECT_TRUE(code == 3 || code == 2 || code == 0) << code;
  if (code == 3) {
    EXPECT_NE(err.find(fs::path(weights).filename().string()), std::string::npos) << err;
  }
}

TEST_F(OutsideInterference, ARunWhoseRowsWereChangedFails) {
  const auto run = half_a_run();
  fs::resize_file(scratch_.path("out/rows-00000.jsonl.part"), 0);
  EXPECT_EQ(run->end(), 2);
  EXPECT_NE(read_text(scratch_.path("err")).find("another program changed this file"), std::string::npos);
  EXPECT_FALSE(fs::exists(scratch_.path("out/_SUCCESS")));
}

TEST_F(OutsideInterference, AFullDiskLosesOnlyUncommittedGroups) {
  ASSERT_EQ(run_sheaf(scratch_, command("--quiet" + set("output.path", "whole"))).exit_code, 0);
  for (int writes = 1; writes < 12; writes += 2) {
    fs::remove_all(scratch_.path("out"));
    const int status = preloaded(SHEAF_FULL_DISK, "SHEAF_TEST_WRITES=" + std::to_string(writes));
    EXPECT_EQ(status, 75);
    const std::string err = read_text(scratch_.path("err"));
    EXPECT_NE(err.find("the disk is full; free some space and rerun the same command to resume"),
              std::string::npos)
        << err;
    EXPECT_EQ(run_sheaf(scratch_, command("--quiet")).exit_code, 0);
    EXPECT_EQ(read_text(scratch_.path("out/rows-00000.jsonl")),
              read_text(scratch_.path("whole/rows-00000.jsonl")));
  }
}

TEST_F(OutsideInterference, AFileSystemWithoutLocksGivesANotice) {
  EXPECT_EQ(preloaded(SHEAF_NO_FLOCK), 0) << read_text(scratch_.path("err"));
  EXPECT_NE(read_text(scratch_.path("err")).find("the file system has no locks"), std::string::npos)
      << read_text(scratch_.path("err"));
  EXPECT_TRUE(fs::exists(scratch_.path("out/_SUCCESS")));
}

}  // namespace
}  // namespace sheaf

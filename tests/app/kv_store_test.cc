// A store of keys and values between runs: other questions about the same contexts compute no context token,
// and the rows are those of a run without a store, to the byte.
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Ran;
using test::run_sheaf;

class KvStoreRun : public testing::Test {
 protected:
  void SetUp() override { model_ = test::make_tiny_model(scratch_); }

  /// Nine contexts; `ask` gives the questions about each, none where it is empty.
  void write_corpus(const std::string& ask) {
    std::string lines;
    for (int i = 0; i < 9; ++i) {
      json line{{"id", i},
                {"context", fmt::format("Context {} tells of {} apples in a {} basket.", i, i * 7, i)}};
      if (!ask.empty()) line["questions"] = {ask + " apples?", ask + " baskets?"};
      lines += line.dump() + "\n";
    }
    scratch_.write("corpus.jsonl", lines);
  }
  std::string job(const std::string& engine, const std::string& method = "name: ippd, documents: 3") {
    return scratch_.write("job.yaml",
                          "model: {path: " + model_ +
                              ", chat: plain}\ninput: {path: corpus.jsonl, id: id, context: context, "
                              "questions: questions}\ntask: {kind: ask}\nmethod: {" +
                              method + ", max_value_tokens: 6}\nengine: {device: cpu, window: 4, " + engine +
                              "}\noutput: {path: out}\n");
  }
  json run(const std::string& folder, const std::string& options = "") {
    const Ran ran =
        run_sheaf(scratch_, fmt::format("run {} --set output.path={} {}", scratch_.path("job.yaml"),
                                        scratch_.path(folder), options));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    err_ = ran.err;
    return json::parse(read_text(scratch_.path(folder + "/report.json")));
  }
  std::string rows(const std::string& folder) {
    return read_text(scratch_.path(folder + "/rows-00000.jsonl"));
  }
  int64_t number(const json& report, const char* path) { return report.at(json::json_pointer(path)); }

  TempFolder scratch_;
  std::string model_, err_;
};

TEST_F(KvStoreRun, OtherQuestionsComputeNoContextToken) {
  for (const std::string dtype : {"f32", "int8"}) {
    write_corpus("How many");
    job("kv_store: store-" + dtype);
    const std::string precise = "--set model.dtype=" + dtype;
    const json first = run("first-" + dtype, precise);
    EXPECT_EQ(number(first, "/kv_store/read_tokens"), 0);
    EXPECT_GT(number(first, "/kv_store/kept_tokens"), 9 * 20);

    write_corpus("Who has which");
    const json second = run("second-" + dtype, precise);
    EXPECT_EQ(number(second, "/kv_store/read_tokens"), number(first, "/kv_store/kept_tokens"));
    EXPECT_EQ(number(second, "/kv_store/kept_tokens"), 0);
    job("threads: 1");
    const json without = run("without-" + dtype, precise);
    EXPECT_FALSE(without.contains("kv_store"));
    EXPECT_EQ(rows("second-" + dtype), rows("without-" + dtype));
    // What is left of the prompts are the questions, whose tokens do not depend on the store.
    EXPECT_EQ(number(second, "/tokens/prefill"),
              number(without, "/tokens/prefill") - number(second, "/kv_store/read_tokens"));
  }
}

TEST_F(KvStoreRun, DocumentsAreComputedBeforeTheirQuestionsAreKnown) {
  write_corpus("");
  job("kv_store: {path: store, gb: 1}");
  const Ran filled = run_sheaf(scratch_, "prefill --json " + scratch_.path("job.yaml"));
  ASSERT_EQ(filled.exit_code, 0) << filled.err;
  const json said = json::parse(filled.out);
  EXPECT_EQ(said["records"], 9);
  EXPECT_EQ(said["computed_tokens"], said["kept_tokens"]);
  const json again = json::parse(run_sheaf(scratch_, "prefill --json " + scratch_.path("job.yaml")).out);
  EXPECT_EQ(again["computed_tokens"], 0);
  EXPECT_EQ(again["known_tokens"], said["kept_tokens"]);

  write_corpus("How many");
  const json asked = run("asked");
  EXPECT_EQ(number(asked, "/kv_store/read_tokens"), said["kept_tokens"]);
  EXPECT_EQ(number(asked, "/kv_store/kept_tokens"), 0);
  job("threads: 1");
  run("plain");
  EXPECT_EQ(rows("asked"), rows("plain"));
}

TEST_F(KvStoreRun, ChainsReadTheirDocuments) {
  std::string lines;
  for (int i = 0; i < 4; ++i)
    lines +=
        json{{"id", i},
             {"documents", {fmt::format("The first of {} papers.", i), "A paper that all have.", "Another."}},
             {"questions", {"What is it about?"}}}
            .dump() +
        "\n";
  scratch_.write("corpus.jsonl", lines);
  for (const std::string method : {"pced", "ape"}) {
    const auto write = [&](const std::string& engine) {
      scratch_.write("job.yaml",
                     "model: {path: " + model_ +
                         ", chat: plain}\ninput: {path: corpus.jsonl, id: id, documents: documents, "
                         "questions: questions}\ntask: {kind: ask}\nmethod: {name: " +
                         method + ", max_value_tokens: 6}\nengine: {device: cpu" + engine +
                         "}\noutput: {path: out}\n");
    };
    write(", kv_store: " + method + "-store");
    const json first = run(method + "-first");
    const json second = run(method + "-second");
    EXPECT_EQ(number(second, "/kv_store/read_tokens"), number(first, "/kv_store/kept_tokens"));
    write("");
    run(method + "-plain");
    EXPECT_EQ(rows(method + "-first"), rows(method + "-plain"));
    EXPECT_EQ(rows(method + "-second"), rows(method + "-plain"));
  }
}

TEST_F(KvStoreRun, ADamagedFileCostsOnlyItself) {
  write_corpus("How many");
  job("kv_store: store");
  const json first = run("first");
  int damaged = 0;
  for (const auto& entry : fs::recursive_directory_iterator(scratch_.path("store")))
    if (entry.path().extension() == ".kv" && damaged++ < 1) fs::resize_file(entry.path(), 5000);
  ASSERT_GT(damaged, 2);
  const Ran verified = run_sheaf(scratch_, "store verify " + scratch_.path("store"));
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_NE(verified.out.find("cut short"), std::string::npos) << verified.out;
  const json second = run("second");
  EXPECT_EQ(number(second, "/kv_store/damaged_files"), 1);
  EXPECT_NE(err_.find("sheaf removed it"), std::string::npos) << err_;
  EXPECT_EQ(rows("first"), rows("second"));
  EXPECT_EQ(run_sheaf(scratch_, "store verify " + scratch_.path("store")).exit_code, 0)
      << "it was made again";
}

TEST_F(KvStoreRun, AStoreInEightBitsIsSmallerAndSeparate) {
  for (const std::string dtype : {"f32", "int8"}) {
    const std::string precise = "--set model.dtype=" + dtype, store = "store-" + dtype;
    write_corpus("How many");
    job("kv_store: " + store);
    const json exact = run("exact-" + dtype, precise);
    job("kv_store: {path: " + store + ", bits: 8}");
    const json first = run("first-" + dtype, precise);
    EXPECT_EQ(rows("first-" + dtype), rows("exact-" + dtype)) << "keys that a run computes are its own";
    EXPECT_EQ(number(first, "/kv_store/read_tokens"), 0) << "those of 16 bits are not for it";
    EXPECT_EQ(number(first, "/kv_store/kept_tokens"), number(exact, "/kv_store/kept_tokens"));
    EXPECT_LT(number(first, "/kv_store/kept_bytes"), number(exact, "/kv_store/kept_bytes") * 7 / 10);
    const json second = run("second-" + dtype, precise), third = run("third-" + dtype, precise);
    EXPECT_EQ(number(second, "/kv_store/read_tokens"), number(first, "/kv_store/kept_tokens"));
    EXPECT_EQ(rows("second-" + dtype), rows("third-" + dtype));
    EXPECT_EQ(json::parse(rows("second-" + dtype).substr(0, rows("second-" + dtype).find('\n')))["id"], 0);
    job("kv_store: " + store);
    const json again = run("again-" + dtype, precise);
    EXPECT_EQ(number(again, "/kv_store/read_tokens"), number(exact, "/kv_store/kept_tokens"));
    EXPECT_EQ(rows("again-" + dtype), rows("exact-" + dtype));
    const json listed =
        json::parse(run_sheaf(scratch_, "store ls --json " + scratch_.path(store)).out)["contents"];
    ASSERT_EQ(listed.size(), 2u);
    EXPECT_EQ(listed[0]["tokens"], listed[1]["tokens"]);
    EXPECT_NE(listed[0]["kind"], listed[1]["kind"]);
  }
}

TEST_F(KvStoreRun, VerifyJudgesKeysInEightBitsAsTheyAreRead) {
  write_corpus("How many");
  job("kv_store: {path: store, bits: 8}");
  const Ran first = run_sheaf(scratch_, "verify --json " + scratch_.path("job.yaml"));
  const Ran second = run_sheaf(scratch_, "verify --json " + scratch_.path("job.yaml"));
  EXPECT_EQ(first.out, second.out) << "an empty store is filled before";
  const Ran shown = run_sheaf(scratch_, "verify " + scratch_.path("job.yaml"));
  EXPECT_NE((shown.out + shown.err).find(" read in "), std::string::npos) << shown.out << shown.err;
  // A folder of rows from other keys is not resumed.
  job("threads: 1");
  run("rows");
  job("kv_store: {path: store, bits: 8}");
  const Ran other = run_sheaf(
      scratch_, fmt::format("run {} --set output.path={}", scratch_.path("job.yaml"), scratch_.path("rows")));
  EXPECT_EQ(other.exit_code, 2) << other.err;
  EXPECT_NE(other.err.find("engine.kv_store.bits"), std::string::npos) << other.err;
}

TEST_F(KvStoreRun, TheStoreIsShownAndPruned) {
  write_corpus("How many");
  job("kv_store: store");
  run("first");
  const std::string store = scratch_.path("store");
  const json listed = json::parse(run_sheaf(scratch_, "store ls --json " + store).out);
  EXPECT_EQ(listed["contents"].size(), 1u);
  EXPECT_EQ(listed["contents"][0]["segments"], 10) << "nine contexts and an instruction";
  const Ran shown = run_sheaf(scratch_, "store ls " + store);
  EXPECT_NE(shown.out.find("model (CPU, "), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find(" kB, last used"), std::string::npos) << shown.out;
  for (const std::string command : {"plan", "estimate"})
    EXPECT_NE(run_sheaf(scratch_, command + " " + scratch_.path("job.yaml")).out.find("look"),
              std::string::npos)
        << command << " says that the store is not looked into";
  const std::string staged = fmt::format("{}/00/{:064}.kv.1.1.part", store, 0);
  fs::create_directories(store + "/00");
  std::ofstream(staged) << "half";
  EXPECT_NE(
      run_sheaf(scratch_, "store prune " + store + " --gb 1").err.find("left in place: 1 unfinished file"),
      std::string::npos);
  EXPECT_NE(run_sheaf(scratch_, "store prune " + store).err.find("--gb"), std::string::npos);
  EXPECT_EQ(run_sheaf(scratch_, "store prune " + store + " --gb 0").exit_code, 0);
  EXPECT_EQ(json::parse(run_sheaf(scratch_, "store ls --json " + store).out)["segments"], 0);
}

TEST_F(KvStoreRun, WrongSettingsAreRefused) {
  write_corpus("How many");
  fs::create_directory(scratch_.path("mine"));
  scratch_.write("mine/diary.txt", "dear diary");
  const auto refused = [&](const std::string& engine, const std::string& command, const std::string& why) {
    job(engine);
    const Ran ran = run_sheaf(scratch_, command + " " + scratch_.path("job.yaml"));
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    EXPECT_NE(ran.err.find(why), std::string::npos) << ran.err;
  };
  refused("kv_store: mine", "run", "not a store of keys and values");
  refused("kv_store: {gb: 3}", "run", "path");
  refused("kv_store: out", "run", "is inside output.path");
  refused("kv_store: ./out/kv", "prefill", "is inside output.path");
  refused("kv_store: out.restart/kv", "run", "is inside output.path");
  refused("kv_store: .", "run", "is inside engine.kv_store");
  refused("kv_store: {path: none/../..}", "prefill", "is inside engine.kv_store");
  refused("kv_store: {path: s, size: 3}", "run", "size");
  refused("kv_store: {path: s, bits: 12}", "run", "engine.kv_store.bits must be 8, or 16");
  refused("kv_store: {path: s, bits: 4}", "run", "engine.kv_store.bits");
  refused("kv_dtype: fp8, kv_store: {path: s, bits: 8}", "run", "have 8 bits already");
  refused("reproducible: true, kv_store: {path: s, bits: 8}", "run", "engine.reproducible");
  refused("kv_store: 's3://bucket/kv'", "run", "must be a folder of this machine");
  refused("kv_store: {path: 'file:///kv'}", "run", "must be a folder of this machine");
  refused("kernels: reference, kv_store: s", "run", "engine.kernels: reference");
  refused("threads: 1", "prefill", "set engine.kv_store");
  job("kv_store: s", "name: standard");
  const Ran nothing = run_sheaf(scratch_, "prefill " + scratch_.path("job.yaml"));
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_NE(nothing.err.find("does not share documents between prompts"), std::string::npos) << nothing.err;
  EXPECT_EQ(run_sheaf(scratch_, "store ls " + scratch_.path("mine")).exit_code, 2);
  EXPECT_EQ(run_sheaf(scratch_, "store ls " + scratch_.path("nowhere")).exit_code, 2);
}

/// The store and the output folder, one inside the other behind links and detours.
TEST_F(KvStoreRun, AStoreInsideTheOutputFolderIsRefused) {
  write_corpus("How many");
  job("kv_store: store");
  fs::create_directories(scratch_.path("store/below"));
  fs::create_directories(scratch_.path("real/kv"));
  fs::create_directory_symlink(scratch_.path("store/below"), scratch_.path("link"));
  fs::create_directory_symlink(scratch_.path("real"), scratch_.path("away"));
  const auto refused = [&](const std::string& out, const std::string& store, const std::string& why) {
    for (const std::string command : {"run", "prefill", "plan"}) {
      const Ran ran = run_sheaf(
          scratch_, fmt::format("{} {} --set output.path={} --set engine.kv_store={}", command,
                                scratch_.path("job.yaml"), scratch_.path(out), scratch_.path(store)));
      EXPECT_EQ(ran.exit_code, 2) << command << ran.err;
      for (const std::string& word : {why, scratch_.path(out), scratch_.path(store)})
        EXPECT_NE(ran.err.find(word), std::string::npos) << word << "\n" << ran.err;
    }
  };
  refused("store", "store", "is inside output.path");
  refused("store/out", "store", "is inside engine.kv_store");
  refused("link/new", "store", "is inside engine.kv_store");
  refused("none/../store/out", "store", "is inside engine.kv_store");
  refused("real", "away/kv", "is inside output.path");
  refused("away/kv/out", "real/kv", "is inside engine.kv_store");
  EXPECT_FALSE(fs::exists(scratch_.path("store/sheaf-kv-store"))) << "before any work";
  EXPECT_FALSE(fs::exists(scratch_.path("store/out")));
  fs::remove_all(scratch_.path("store"));
  run("store-beside");  // begins with the same letters
}

/// What others keep in the folder of a store, through the commands that clean it.
TEST_F(KvStoreRun, CommandsKeepFilesThatAreNotTheStores) {
  write_corpus("How many");
  job("kv_store: store");
  run("first");
  const std::string store = scratch_.path("store");
  fs::create_directories(store + "/ab");
  fs::create_directories(scratch_.path("disk/cd"));
  fs::create_directory_symlink(scratch_.path("disk/cd"), store + "/cd");
  const std::vector<std::string> foreign = {
      scratch_.write("store/ab/players.kv", "mine"), scratch_.write("store/ab/download.part", "mine"),
      scratch_.write("disk/cd/rows-00000.jsonl.part", "mine"),
      scratch_.write("disk/cd/cd" + std::string(62, '0') + ".kv", "mine")};
  for (const std::string& file : foreign)
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(48));
  EXPECT_EQ(run_sheaf(scratch_, "store verify --remove " + store).exit_code, 0);
  EXPECT_EQ(run_sheaf(scratch_, "prefill " + scratch_.path("job.yaml")).exit_code, 0);
  run("second");
  EXPECT_EQ(run_sheaf(scratch_, "store prune " + store + " --gb 0").exit_code, 0);
  for (const std::string& file : foreign) EXPECT_EQ(read_text(file), "mine") << file;
}

}  // namespace
}  // namespace sheaf

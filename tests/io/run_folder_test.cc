// The run folder under every fault: after each one the same job resumes, and the files it ends with are byte
// for byte those of a run that nothing happened to.
#include "io/run_folder/run_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "io/run_folder/row_line.h"
#include "io/run_folder/table_rows.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/io/faulty_files.h"
#include "tests/io/folder_contents.h"

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
constexpr int64_t kCorpusRecords = 23;
constexpr int64_t kGroup = 3;

enum Format { kLines, kEchoed, kParquet };

/// Writes what it is given at once, so that every row is an operation that may fail.
class EchoWriter : public RowsWriter {
 public:
  explicit EchoWriter(OutputFile& target) : target_(target) { target_.append("BEGIN\n"); }
  void add(const Row& row, int64_t bytes) override {
    target_.append(fmt::format("{} of {}\n", row_line(row), bytes));
  }
  void close() override { target_.append("END\n"); }

 private:
  OutputFile& target_;
};

RunFolderOptions make_options(const std::string& path, Format format) {
  RunFolderOptions options;
  options.path = path;
  options.rows_per_file = 6;
  options.fingerprint = {{"job", {{"method", {{"documents", 6}}}}},
                         {"corpus", {{"a/b.jsonl", {{"bytes", 12}}}}}};
  if (format == kLines) return options;
  options.ending = ".parquet";
  options.writer = [format](OutputFile& target) -> std::unique_ptr<RowsWriter> {
    if (format == kEchoed) return std::make_unique<EchoWriter>(target);
    using Type = TableColumn::Type;
    return write_table_rows(OutputFormat::parquet,
                            {{RowField::id, {"id", Type::integer}},
                             {RowField::attribute, {"Brand", Type::text}},
                             {RowField::attribute, {"Weight", Type::number}},
                             {RowField::attribute, {"Sizes", Type::texts}},
                             {RowField::notes, {"notes", Type::text_map}},
                             {RowField::logprobs, {"logprobs", Type::number_map}}},
                            target);
  };
  return options;
}

Reject make_reject(const std::string& file, int64_t row, const json& id, const std::string& reason) {
  Reject reject;
  reject.place.file = file;
  reject.place.row = row;
  reject.id = id;
  reject.reason = reason;
  return reject;
}

/// Of every kind of value, also of those that JSON cannot tell.
Row make_row(int64_t at) {
  RowAnswer brand{"b" + std::to_string(at * at)}, weight{static_cast<double>(at) / 3}, sizes;
  if (at % 5 == 1) brand = {"\xff", "not \xc3"};
  if (at % 2 == 1) brand.logprob = at % 3 == 0 ? -INFINITY : -1.0 / static_cast<double>(at);
  if (at % 4 == 1) weight = {uint64_t{1} << 63};
  if (at % 4 == 2) weight = {at};
  if (at % 3 == 1) sizes = {std::vector<std::string>{"a", "b"}};
  return {at, ExtractedValues{"Tea", {{"Brand", brand}, {"Weight", weight}, {"Sizes", sizes}}}};
}

/// The outcome of corpus rows [at, end), the same every time.
void fill_group(RunFolder& folder, int64_t at, int64_t end) {
  for (; at < end; ++at) {
    if (at % 7 == 4 || (at >= 12 && at < 15))
      folder.reject(make_reject("corpus.jsonl", at + 1, at, "bad"));
    else
      folder.row(make_row(at));
  }
  folder.commit(end);
}

/// A job of rows that need no model: does what is left to do in the folder. `committed` follows what is safe.
void work(FileLayer& files, const RunFolderOptions& options, int64_t* committed = nullptr) {
  RunFolder folder(files, options);
  if (folder.finished()) return;
  if (committed) *committed = std::max(*committed, folder.position());
  for (int64_t at = folder.position(); at < kCorpusRecords;) {
    const int64_t end = std::min(kCorpusRecords, (at / kGroup + 1) * kGroup);
    fill_group(folder, at, end);
    at = end;
    if (committed) *committed = end;
  }
  folder.finish("{\"report\": true}\n");
  if (committed) *committed = kCorpusRecords + 1;
}

class RunFolderTest : public testing::TestWithParam<Format> {
 protected:
  RunFolderOptions options() const { return make_options(folder_.path("out"), GetParam()); }
  FolderContents undisturbed() const {
    const TempFolder other(quick_place());
    const auto options = make_options(other.path("out"), GetParam());
    work(quick_files(), options);
    return contents(options.path);
  }
  void fresh() const { std::filesystem::remove_all(folder_.path("out")); }
  std::string out(const std::string& name) const { return folder_.path("out/" + name); }

  /// Does what is left to do, which begins behind all that was committed. From one state of the folder it is
  /// done once, however many faults lead there.
  void resume(int64_t committed, const FolderContents& expected) {
    const auto [position, is_new] = positions_.try_emplace(contents(options().path));
    if (is_new) {
      {
        const RunFolder again(quick_files(), options());
        position->second = again.finished() ? kCorpusRecords + 1 : again.position();
      }
      work(quick_files(), options());
      ASSERT_EQ(contents(options().path), expected);
    }
    ASSERT_GE(position->second, committed) << "a committed group was lost";
  }

  TempFolder folder_{quick_place()};
  std::map<FolderContents, int64_t> positions_;  ///< at which work is resumed from a state of the folder
};

INSTANTIATE_TEST_SUITE_P(Formats, RunFolderTest, testing::Values(kLines, kEchoed, kParquet),
                         [](const auto& param) {
                           return param.param == kLines    ? "Lines"
                                  : param.param == kEchoed ? "Echoed"
                                                           : "Parquet";
                         });

TEST_P(RunFolderTest, PublishesWholeFilesWithTheirSums) {
  const FolderContents files = undisturbed();
  const std::string ending = GetParam() ? ".parquet" : ".jsonl";
  std::vector<std::string> names;
  for (const auto& [name, text] : files) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"_SUCCESS", "journal", "manifest.json", "rejects.jsonl", "report.json",
                                      "rows-00000" + ending, "rows-00001" + ending, "rows-00002" + ending}));
  const json manifest = json::parse(files.at("manifest.json"));
  EXPECT_EQ(manifest["rows"].get<int>() + manifest["rejects"].get<int>(), kCorpusRecords);
  EXPECT_EQ(manifest["files"].size(), 4u);
  int64_t rows = 0;
  for (const json& file : manifest["files"]) {
    const std::string& text = files.at(file["name"]);
    EXPECT_EQ(file["bytes"], text.size());
    EXPECT_EQ(file["sha256"], sha256(text));
    if (file["name"] != "rejects.jsonl") rows += file["rows"].get<int64_t>();
  }
  EXPECT_EQ(rows, manifest["rows"]);
  EXPECT_TRUE(files.at("rejects.jsonl")
                  .starts_with("{\"file\":\"corpus.jsonl\",\"row\":5,\"id\":4,\"reason\":\"bad\"}\n{"));
}

TEST_P(RunFolderTest, ResumesAfterAFaultAtEveryOperation) {
  const FolderContents expected = undisturbed();
  for (FaultKind kind : {FaultKind::error, FaultKind::short_write, FaultKind::kill_before,
                         FaultKind::kill_in_write, FaultKind::kill_after}) {
    int faults = 0;
    for (int at = 1;; ++at) {
      SCOPED_TRACE(fmt::format("operation {}, kind {}", at, static_cast<int>(kind)));
      fresh();
      int64_t committed = 0;
      FaultyFiles files(kind, at);
      bool stopped = false;
      try {
        work(files, options(), &committed);
      } catch (const Killed&) {
        stopped = true;
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::fatal);
        stopped = true;
      }
      if (!stopped) break;
      ++faults;
      ASSERT_NO_FATAL_FAILURE(resume(committed, expected));
    }
    EXPECT_GT(faults, 50);
  }
}

TEST_P(RunFolderTest, ResumesAfterASecondKillWhileResuming) {
  const FolderContents expected = undisturbed();
  int runs = 0;
  for (int first = 1;; ++first) {
    fresh();
    bool stopped = false;
    try {
      FaultyFiles files(FaultKind::kill_in_write, first);
      work(files, options());
    } catch (const Killed&) {
      stopped = true;
    }
    if (!stopped) break;
    const FolderContents left = contents(options().path);
    for (int second = 1;; ++second) {
      SCOPED_TRACE(fmt::format("operations {} and {}", first, second));
      put_back(options().path, left);
      bool again = false;
      try {
        FaultyFiles files(FaultKind::kill_after, second);
        work(files, options());
      } catch (const Killed&) {
        again = true;
      }
      if (!again) break;
      ++runs;
      ASSERT_NO_FATAL_FAILURE(resume(0, expected));
      second += GetParam() == kParquet ? 20 : 2;  // the pairs are many
    }
  }
  EXPECT_GT(runs, 500);
}

TEST_P(RunFolderTest, ResumesAfterPowerLossAtEveryOperation) {
  const FolderContents expected = undisturbed();
  int losses = 0;
  bool stopped = true;
  for (int at = 1; stopped; ++at) {
    fresh();
    real_files().make_folder(options().path);
    int64_t committed = 0;
    PowerLossFiles files(options().path, at);
    stopped = false;
    try {
      work(files, options(), &committed);
    } catch (const Killed&) {
      stopped = true;
    }
    for (uint32_t seed = 0; seed < 12; ++seed, ++losses) {
      SCOPED_TRACE(fmt::format("operation {}, seed {}", at, seed));
      files.lose_power(seed);
      ASSERT_NO_FATAL_FAILURE(resume(committed, expected));
    }
  }
  EXPECT_GT(losses, 600);
}

TEST_P(RunFolderTest, ResumesAfterPowerLossWhileResumingOrRestarting) {
  const FolderContents expected = undisturbed();
  try {
    FaultyFiles files(FaultKind::kill_before, 48);
    work(files, options());
    FAIL() << "the first run was to be killed";
  } catch (const Killed&) {
  }
  const FolderContents left = contents(options().path);
  for (const bool restart : {false, true}) {
    bool stopped = true;
    for (int at = 1; stopped; ++at) {
      put_back(options().path, left);
      PowerLossFiles files(options().path, at);
      stopped = false;
      try {
        auto again = options();
        again.restart = restart;
        work(files, again);
      } catch (const Killed&) {
        stopped = true;
      }
      for (uint32_t seed = 0; seed < 3; ++seed) {
        SCOPED_TRACE(fmt::format("operation {}, seed {}{}", at, seed, restart ? ", restart" : ""));
        files.lose_power(seed);
        ASSERT_NO_FATAL_FAILURE(resume(0, expected));
      }
    }
  }
}

/// A folder whose run was killed in its last group.
void leave_unfinished(const RunFolderOptions& options) {
  RunFolder folder(quick_files(), options);
  for (int64_t at = 0; at < 18; at += kGroup) fill_group(folder, at, at + kGroup);
}

void overwrite(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

TEST_P(RunFolderTest, ADamagedJournalLosesNoRows) {
  const FolderContents expected = undisturbed();
  fresh();
  leave_unfinished(options());
  const FolderContents left = contents(options().path);
  const std::string& journal = left.at("journal");
  const auto put_back = [&] {
    fresh();
    for (const auto& [name, text] : left) folder_.write("out/" + name, text);
    folder_.write("out/.lock", "123");
  };
  const size_t head = journal.find('\n') + 1;
  int refused = 0;
  for (size_t at = 0; at < journal.size(); at += 5) {
    for (const bool cut : {true, false}) {
      put_back();
      std::string changed = cut ? journal.substr(0, at) : journal;
      if (!cut) changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
      overwrite(out("journal"), changed);
      try {
        work(quick_files(), options());
        ASSERT_GE(at, cut ? head - 1 : head) << "a run resumed without the head of its journal";
        ASSERT_EQ(contents(options().path), expected) << (cut ? "cut at " : "flipped at ") << at;
      } catch (const Error& error) {
        ++refused;
        // Without its head a journal cannot be trusted; in the midst it may no longer know a file that was
        // converted and is gone.
        ASSERT_NE(std::string(error.what()).find("--restart"), std::string::npos) << error.what();
        ASSERT_EQ(error.fault(), Fault::input);
        ASSERT_LT(at, head) << error.what();
      }
    }
  }
  EXPECT_GT(refused, 10);
}

TEST_P(RunFolderTest, DamagedRowsAreWrittenAgain) {
  const FolderContents expected = undisturbed();
  for (const char* name : {"rows-00001.jsonl.part", "rows-00002.jsonl.part", "rejects.jsonl.part"}) {
    fresh();
    leave_unfinished(options());
    const auto text = read_whole(out(name));
    if (!text) continue;
    std::string changed = *text;
    changed[changed.size() - 5] ^= 1;
    overwrite(out(name), changed);
    EXPECT_FALSE(RunFolder(quick_files(), options()).notice().empty());
    work(quick_files(), options());
    EXPECT_EQ(contents(options().path), expected) << name;
  }
}

TEST_P(RunFolderTest, RefusesAChangedJobAndSaysWhatChanged) {
  leave_unfinished(options());
  auto changed = options();
  changed.fingerprint["job"]["method"]["documents"] = 4;
  changed.fingerprint["corpus"] = {{"a/b.jsonl", {{"bytes", 13}}}};
  const std::string message = error_of([&] { RunFolder(quick_files(), changed); });
  EXPECT_NE(message.find("the corpus grew: a/b.jsonl grew from 12 to 13 bytes; method.documents was 6 "
                         "and is now 4"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("--restart"), std::string::npos);
  work(quick_files(), options());
  EXPECT_NE(error_of([&] { RunFolder(quick_files(), changed); }).find("was 6 and is now 4"),
            std::string::npos)
      << "a finished folder too";
  EXPECT_TRUE(RunFolder(quick_files(), options()).finished());
  changed.restart = true;
  EXPECT_EQ(RunFolder(quick_files(), changed).position(), 0);
}

TEST_P(RunFolderTest, RestartLeavesOtherFilesAlone) {
  leave_unfinished(options());
  folder_.write("out/notes.txt", "mine");
  folder_.write("out/rows-old.jsonl", "mine");
  auto restart = options();
  restart.restart = true;
  work(quick_files(), restart);
  FolderContents found = contents(options().path);
  EXPECT_EQ(found["notes.txt"], "mine");
  EXPECT_EQ(found["rows-old.jsonl"], "mine");
  found.erase("notes.txt");
  found.erase("rows-old.jsonl");
  EXPECT_EQ(found, undisturbed());
}

TEST_P(RunFolderTest, ASecondWriterIsRefused) {
  const FolderContents expected = undisturbed();
  {
    RunFolder first(quick_files(), options());
    const std::string message = error_of([&] { RunFolder(quick_files(), options()); });
    EXPECT_NE(message.find("(pid " + std::to_string(getpid()) + ")"), std::string::npos) << message;
    auto restart = options();
    restart.restart = true;
    EXPECT_NE(error_of([&] { RunFolder(quick_files(), restart); }).find("another process"),
              std::string::npos);
  }
  work(quick_files(), options());
  EXPECT_EQ(contents(options().path), expected);
}

TEST_P(RunFolderTest, MissingOrDamagedResultsAreMadeAgain) {
  const FolderContents expected = undisturbed();
  const std::string first = GetParam() ? "rows-00000.parquet" : "rows-00000.jsonl";
  for (const bool gone : {true, false}) {
    fresh();
    leave_unfinished(options());
    ASSERT_TRUE(std::filesystem::exists(out(first)));
    if (gone) {
      std::filesystem::remove(out(first));
    } else {
      std::string text = read_text(out(first));
      text[text.size() / 2] ^= 1;
      folder_.write("out/" + first, text);
    }
    {
      const RunFolder folder(quick_files(), options());
      EXPECT_EQ(folder.position(), 0);
      EXPECT_NE(folder.notice().find("damaged"), std::string::npos) << folder.notice();
    }
    work(quick_files(), options());
    EXPECT_EQ(contents(options().path), expected) << (gone ? "gone" : "damaged");
  }
}

TEST_P(RunFolderTest, AFinishedFolderWithoutItsRowsIsRefused) {
  work(quick_files(), options());
  EXPECT_TRUE(RunFolder(quick_files(), options()).finished());
  const std::string first = GetParam() ? "rows-00000.parquet" : "rows-00000.jsonl";
  std::filesystem::resize_file(out(first), 3);
  const std::string message = error_of([&] { RunFolder(quick_files(), options()); });
  EXPECT_NE(message.find(first + " is missing or does not have its"), std::string::npos) << message;
  std::filesystem::remove(out(first));
  EXPECT_NE(error_of([&] { RunFolder(quick_files(), options()); }).find(first), std::string::npos);
}

TEST_P(RunFolderTest, RowsWithoutAJournalAreRefused) {
  folder_.write("out/rows-00000.jsonl", "{}\n");
  EXPECT_NE(error_of([&] { RunFolder(quick_files(), options()); }).find("no run of sheaf"),
            std::string::npos);
}

TEST(RunFolder, AJobWithoutRowsHasAnEmptyRowsFile) {
  const TempFolder folder;
  RunFolder(quick_files(), make_options(folder.path("deep/er/out"), kLines)).finish("{}\n");
  EXPECT_EQ(read_text(folder.path("deep/er/out/rows-00000.jsonl")), "");
  EXPECT_TRUE(std::filesystem::exists(folder.path("deep/er/out/_SUCCESS")));
}

TEST(RunFolder, WritesTextThatIsNotUtf8) {
  const TempFolder folder;
  RunFolder run(real_files(), make_options(folder.path("out"), kLines));
  run.row({1, RowAnswer{"x\xff y"}});
  run.reject(make_reject("f", 1, "\xc3", "bad \xf0"));
  run.commit(2);
  run.finish("{}\n");
  EXPECT_EQ(json::parse(read_text(folder.path("out/rows-00000.jsonl")))["answer"], "x\uFFFD y");
  EXPECT_EQ(json::parse(read_text(folder.path("out/rejects.jsonl")))["reason"], "bad \uFFFD");
}

TEST(RunFolder, UnwritablePathsAreRefused) {
  const TempFolder folder;
  folder.write("file", "x");
  const auto open = [&](const std::string& name) {
    return [path = folder.path(name)] { RunFolder(quick_files(), make_options(path, kLines)); };
  };
  EXPECT_NE(error_of(open("file")).find("a file of that name is in the way"), std::string::npos);
  EXPECT_NE(error_of(open("file/out")).find("cannot be created"), std::string::npos);
}

TEST(RunFolder, AReadOnlyFolderIsRefused) {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("out"));
  std::filesystem::permissions(folder.path("out"),
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  // Root may write everywhere, so a child that is somebody else tries it.
  const pid_t child = fork();
  if (child == 0) {
    if (getuid() == 0 && setuid(65534) != 0) _exit(9);
    try {
      const RunFolder run(real_files(), make_options(folder.path("out"), kLines));
    } catch (const Error& error) {
      const std::string text = error.what();
      _exit(error.fault() == Fault::fatal && text.find("Permission denied") != std::string::npos &&
                    text.find("rerun the same command to resume") != std::string::npos
                ? 0
                : 2);
    }
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "exit code of the child: " << WEXITSTATUS(status);
  std::filesystem::permissions(folder.path("out"), std::filesystem::perms::owner_all);
}

TEST(Sha256, AgreesWithTheStandard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  Sha256 pieces;
  for (size_t size = 0; size < 200; ++size) pieces.add(std::string(size, 'x'));
  EXPECT_EQ(pieces.hex(), sha256(std::string(199 * 200 / 2, 'x')));
  // A sum continues after it was told, and a copy by itself.
  Sha256 first;
  EXPECT_EQ(first.add("a").hex(), sha256("a"));
  Sha256 second = first;
  second.add("bc");
  EXPECT_EQ(first.add("b").hex(), sha256("ab"));
  EXPECT_EQ(second.hex(), sha256("abc"));
  first = second;
  EXPECT_EQ(first.add("d").hex(), sha256("abcd"));
  EXPECT_EQ(second.hex(), sha256("abc"));
}

}  // namespace
}  // namespace sheaf

// Folders that are not a run's own: somebody else's files stay, and what only looks like a run is refused by
// name.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "io/base/file_layer.h"
#include "io/base/job_changes.h"
#include "io/run_folder/journal.h"
#include "io/run_folder/merge_shards.h"
#include "io/run_folder/run_folder.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

RunFolderOptions small_run(const std::string& path) {
  RunFolderOptions options;
  options.path = path;
  options.rows_per_file = 2;
  options.fingerprint = {{"job", 1}};
  return options;
}

std::string open_error(RunFolderOptions options) {
  return error_of([&] { RunFolder(real_files(), options); });
}

/// A run of four rows and a reject, finished where `finish` says so.
void make_run(const RunFolderOptions& options, bool finish) {
  RunFolder folder(real_files(), options);
  for (int i = 0; i < 4; i += 2) {
    folder.row({i});
    folder.row({i + 1});
    if (i == 0) folder.reject({});
    folder.commit(i + 2);
  }
  folder.save_progress("{}");
  if (finish) folder.finish("{}\n", "<p>");
}

TEST(ForeignFolder, KeepsItsFilesWhateverTheyAreCalled) {
  for (const char* name : {"manifest.json", "report.json", "report.html", "progress.json", "rejects.jsonl",
                           "rows-00000.jsonl", "rows-00000.jsonl.part", "_SUCCESS", "journal", "notes.txt"}) {
    for (const bool restart : {false, true}) {
      const TempFolder folder;
      const std::string path = folder.path("out");
      folder.write(std::string("out/") + name, "mine");
      RunFolderOptions options = small_run(path);
      options.restart = restart;
      const std::string error = open_error(options);
      EXPECT_NE(error.find(path), std::string::npos) << name << ": " << error;
      EXPECT_EQ(list_folder(path), std::vector<std::string>{name}) << "nothing is added, not even a lock";
      EXPECT_EQ(read_text(path + "/" + name), "mine");
    }
  }
}

TEST(ForeignFolder, HiddenFilesAndALostJournalAreAccepted) {
  const TempFolder folder;
  folder.write("out/.gitkeep", "");
  folder.write("out/.lock", "123");
  folder.write("out/journal.part", "0123456789abcdef {\"jour");
  make_run(small_run(folder.path("out")), true);
  EXPECT_TRUE(file_size(folder.path("out/_SUCCESS")));
  EXPECT_TRUE(file_size(folder.path("out/.gitkeep")));
}

TEST(ForeignFolder, ARestartNeedsARun) {
  const TempFolder folder;
  RunFolderOptions options = small_run(folder.path("out"));
  make_run(options, true);
  options.restart = true;
  make_run(options, false);
  EXPECT_FALSE(file_size(folder.path("out/_SUCCESS")));
  // A merge that was cut off is no run.
  folder.write("merge/.merging", "");
  folder.write("merge/rows-00000.jsonl", "mine");
  options.path = folder.path("merge");
  EXPECT_NE(open_error(options), "no error");
  EXPECT_EQ(read_text(folder.path("merge/rows-00000.jsonl")), "mine");
}

TEST(ForeignFolder, AFolderThatWasReplacedIsLeftToItsNewOwner) {
  for (const bool replaced : {false, true}) {
    const TempFolder folder;
    const std::string path = folder.path("out");
    RunFolder first(real_files(), small_run(path));
    first.row({0});
    first.commit(1);
    std::filesystem::remove_all(path);
    if (replaced) make_run(small_run(path), false);
    const auto before = list_folder(path);
    const auto expect_refusal = [&](const auto& act) {
      const std::string error = error_of(act);
      EXPECT_NE(error.find("deleted or replaced"), std::string::npos) << error;
    };
    first.row({1});
    expect_refusal([&] { first.commit(2); });
    expect_refusal([&] { first.save_progress("{}"); });
    expect_refusal([&] { first.finish("{}\n"); });
    EXPECT_EQ(list_folder(path), before);
  }
}

TEST(ForeignFolder, AMergeIntoAReplacedFolderIsRefused) {
  /// Replaces the folder while the shard's rows are being copied.
  class Replacing : public FileLayer {
   public:
    explicit Replacing(std::string folder) : folder_(std::move(folder)) {}
    std::unique_ptr<OutputFile> open(const std::string& path) override {
      if (path.ends_with("rejects.jsonl.part")) {
        std::filesystem::remove_all(folder_);
        std::filesystem::create_directories(folder_);
      }
      return real_files().open(path);
    }
    void rename(const std::string& from, const std::string& to) override { real_files().rename(from, to); }
    void remove(const std::string& path) override { real_files().remove(path); }
    void make_folder(const std::string& path) override { real_files().make_folder(path); }
    void remove_folder(const std::string& path) override { real_files().remove_folder(path); }
    bool exchange(const std::string& a, const std::string& b) override { return real_files().exchange(a, b); }
    void sync_folder(const std::string& path) override { real_files().sync_folder(path); }
    std::unique_ptr<FolderLock> lock(const std::string& folder) override { return real_files().lock(folder); }

   private:
    std::string folder_;
  };
  const TempFolder folder;
  RunFolderOptions options = small_run(folder.path("shard"));
  options.fingerprint = {{"shard", {{"index", 0}, {"count", 1}, {"first", 0}, {"end", 4}}}};
  make_run(options, true);
  Replacing files(folder.path("out"));
  const std::string error = error_of([&] { merge_shards(files, folder.path("out"), {options.path}); });
  EXPECT_NE(error.find("deleted or replaced"), std::string::npos) << error;
  EXPECT_FALSE(file_size(folder.path("out/_SUCCESS")));
}

/// A journal whose sums are right, whatever its lines say.
std::string make_journal(const std::vector<ordered_json>& records) {
  std::string text, before;
  for (const ordered_json& record : records) {
    const std::string line = journal_line(record, before);
    before = line.substr(0, line.find(' '));
    text += line;
  }
  return text;
}

TEST(ForeignFolder, JournalsThatSheafDidNotWriteAreRefusedByName) {
  const ordered_json head = {{"journal", 1}, {"first_row", 0}, {"fingerprint", {{"job", 1}}}};
  const ordered_json group = {{"position", 2},      {"rows", 1},
                              {"rejects", 1},       {"file_rows", 1},
                              {"file_bytes", 2},    {"file_sha256", std::string(64, '0')},
                              {"rejects_bytes", 2}, {"rejects_sha256", std::string(64, '0')}};
  std::vector<std::vector<ordered_json>> journals = {
      {{{"journal", 1}, {"first_row", "0"}, {"fingerprint", {{"job", 1}}}}},
      {{{"journal", 1}, {"first_row", 7}, {"fingerprint", {{"job", 1}}}}},
      {{{"journal", 1}, {"first_row", 0}}},
      {{{"journal", "1"}}},
      {head, {{"published", "../../etc/passwd"}, {"rows", 1}, {"bytes", 1}, {"sha256", ""}}},
      {head, {{"published", "rows-00000.jsonl"}, {"rows", 1}, {"bytes", "1"}, {"sha256", ""}}},
      {head, {{"position", 2}}}};
  for (const auto& [key, value] : group.items()) {
    ordered_json wrong = group;
    wrong[key] = value.is_string() ? ordered_json(1) : ordered_json("1");
    journals.push_back({head, wrong});
    if (value.is_string()) continue;
    wrong[key] = -1;
    journals.push_back({head, wrong});
  }
  for (const auto& records : journals) {
    const TempFolder folder;
    folder.write("out/journal", make_journal(records));
    const std::string error = open_error(small_run(folder.path("out")));
    EXPECT_NE(error.find(folder.path("out")), std::string::npos) << error;
    EXPECT_NE(error.find("--restart"), std::string::npos) << error;
    RunFolderOptions again = small_run(folder.path("out"));
    again.restart = true;
    EXPECT_EQ(open_error(again), "no error");
  }
}

TEST(ForeignFolder, ManifestsThatSheafDidNotWriteAreRefusedByName) {
  const TempFolder folder;
  const RunFolderOptions options = small_run(folder.path("out"));
  make_run(options, true);
  const std::string path = folder.path("out/manifest.json");
  const ordered_json good = ordered_json::parse(read_text(path));
  std::vector<std::string> bad = {"", "[]", "{", "{\"manifest\": 1}", std::string(1'000'000, '[')};
  for (const char* pointer :
       {"/manifest", "/rows", "/rejects", "/records", "/records/first", "/records/end", "/files", "/files/0",
        "/files/0/name", "/files/0/rows", "/files/0/bytes", "/files/0/sha256", "/fingerprint"}) {
    for (const ordered_json& other : {ordered_json("x"), ordered_json(-1), ordered_json(), ordered_json(1e30),
                                      ordered_json::array({1}), ordered_json("../x")}) {
      ordered_json wrong = good;
      wrong[ordered_json::json_pointer(pointer)] = other;
      if (wrong != good) bad.push_back(wrong.dump());
    }
  }
  int refused = 0;
  for (const std::string& text : bad) {
    folder.write("out/manifest.json", text);
    const std::string error = open_error(options);
    // A name or a sum may be any text; then the file is not there, or was not looked into.
    if (error == "no error") continue;
    ++refused;
    EXPECT_NE(error.find(folder.path("out")), std::string::npos) << error;
    EXPECT_NE(error.find("--restart"), std::string::npos) << error;
  }
  EXPECT_GT(refused, 60);
}

TEST(ForeignFolder, PipesInTheFolderAreRefusedWithoutWaiting) {
  for (const char* name :
       {"journal", "progress.json", "rows-00000.jsonl.part", "rejects.jsonl.part", ".lock"}) {
    const TempFolder folder;
    const std::string path = folder.path("out");
    make_run(small_run(path), false);
    std::filesystem::remove(path + "/" + name);
    ASSERT_EQ(mkfifo((path + "/" + name).c_str(), 0600), 0);
    const std::string error = open_error(small_run(path));
    if (std::string_view(name).starts_with("rows-")) continue;  // that file was published and is not needed
    EXPECT_NE(error.find("is a named pipe, not a regular file"), std::string::npos) << name << ": " << error;
  }
}

TEST(ForeignFolder, ChangesOfManyFilesAreListedInLinearTime) {
  ordered_json::object_t before, now;
  for (int i = 0; i < 200'000; ++i) {
    const std::string name = "corpus/" + std::to_string(i) + ".jsonl";
    if (i != 7) before.emplace_back(name, ordered_json{{"bytes", i}});
    if (i != 199'999) now.emplace_back(name, ordered_json{{"bytes", i == 100 ? 0 : i}});
  }
  EXPECT_EQ(list_changes(before, now),
            (std::vector<std::string>{"corpus/100.jsonl.bytes was 100 and is now 0",
                                      "corpus/199999.jsonl was removed", "corpus/7.jsonl was added"}));
}

}  // namespace
}  // namespace sheaf

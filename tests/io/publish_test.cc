// A run that goes to a store: whatever breaks off, _SUCCESS stands for one whole run, and trying again ends
// well.
#include "io/run_folder/publish.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <map>

#include "io/base/sha256.h"
#include "io/run_folder/manifest.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace sheaf {
namespace {

using Files = std::map<std::string, std::string>;

/// A store in memory that dies at an operation.
class MemoryStore : public Store {
 public:
  Files files;
  int64_t operations = 0, dies_at = -1;
  std::function<void(const Files&)> look = [](const Files&) {};

  std::string name() const override { return "s3://b/run"; }
  std::map<std::string, FileIdentity> list() override {
    live();
    std::map<std::string, FileIdentity> found;
    for (const auto& [name, text] : files) found[name] = {std::ssize(text), versions_[name]};
    return found;
  }
  std::optional<FileIdentity> identify(const std::string& file) override {
    live();
    const auto found = files.find(file);
    if (found == files.end()) return std::nullopt;
    return FileIdentity{std::ssize(found->second), versions_[file], sha256(found->second)};
  }
  bool read_pieces(const std::string& file, const std::function<void(std::string_view)>& take) override {
    live();
    const auto found = files.find(file);
    if (found != files.end()) take(found->second);
    return found != files.end();
  }
  void put(const std::string& file, std::string_view text) override {
    if (file == meanwhile && then) std::exchange(then, nullptr)();
    change([&] {
      files[file] = text;
      versions_[file] = ++version_ * 1'000'001;
    });
  }
  void put_file(const std::string& file, const std::string& local, const std::string& sum) override {
    const std::string text = read_text(local);
    if (!sum.empty() && sum != sha256(text)) refuse("{}: the file does not match its manifest", local);
    put(file, text);
  }
  void remove(const std::string& file) override {
    change([&] { files.erase(file); });
  }

  std::string meanwhile;       ///< file before whose put `then` happens
  std::function<void()> then;  ///< what another process does

 private:
  void live() {
    if (operations++ == dies_at) throw StoreUnreachable("gone");
  }
  /// It may die before it did what was asked, or before it could say so.
  template <class Change>
  void change(Change&& change) {
    live();
    change();
    look(files);
    live();
  }

  std::map<std::string, int64_t> versions_;  ///< times of puts, in microseconds
  int64_t version_ = 0;
};

Files make_run(const TempFolder& folder, const std::string& mark, int rows,
               const std::string& where = "run") {
  Files files;
  Manifest manifest;
  const auto add = [&](const std::string& name, const std::string& text, int64_t count) {
    files[name] = text;
    manifest.files.push_back({name, count, std::ssize(text), sha256(text)});
  };
  for (int i = 0; i < rows; ++i) add("rows-0000" + std::to_string(i) + ".jsonl", mark + std::to_string(i), 1);
  add("rejects.jsonl", mark, 1);
  manifest.rows = rows;
  manifest.rejects = 1;
  manifest.fingerprint = {{"run", mark}};
  files["report.json"] = "{}" + mark;
  files["manifest.json"] = manifest_json(manifest).dump();
  files["_SUCCESS"] = "";
  std::filesystem::remove_all(folder.path(where));
  for (const auto& [name, text] : files) folder.write(where + "/" + name, text);
  for (const char* own : {"journal", "progress.json", "rows-00009.jsonl.part"})
    folder.write(where + "/" + own, "own");
  return files;
}

/// Sees that _SUCCESS never stands beside anything but one of these whole runs.
auto expect_whole(const std::vector<Files>& runs) {
  return [runs](const Files& files) {
    if (files.contains("_SUCCESS")) {
      Files run = files;
      run.erase("_publishing");
      EXPECT_NE(std::ranges::find(runs, run), runs.end());
    }
    if (files.contains("manifest.json") && files.at("manifest.json") == runs.back().at("manifest.json")) {
      for (const auto& [name, text] : runs.back())
        if (name != "_SUCCESS") {
          ASSERT_TRUE(files.contains(name)) << name;
          EXPECT_EQ(files.at(name), text);
        }
    }
  };
}

TEST(Publish, UploadsEveryFileOnce) {
  const TempFolder folder;
  const Files run = make_run(folder, "a", 3);
  MemoryStore store;
  check_store(store, folder.path("run"), false);
  store.look = expect_whole({run});
  EXPECT_EQ(publish_run(store, folder.path("run"), false), 7);
  EXPECT_EQ(store.files, run);
  EXPECT_EQ(publish_run(store, folder.path("run"), false), 0) << "nothing is left to do";
  check_store(store, folder.path("run"), false);
}

TEST(Publish, ResumesAfterDeathAtEveryOperation) {
  for (const bool replaces : {false, true}) {
    bool finished = false;
    for (int64_t death = 0; !finished; ++death) {
      const TempFolder folder;
      MemoryStore store;
      std::vector<Files> runs;
      if (replaces) {
        runs.push_back(make_run(folder, "old", 5));
        publish_run(store, folder.path("run"), false);
      }
      runs.push_back(make_run(folder, "new", 3));
      store.look = expect_whole(runs);
      store.operations = 0;
      store.dies_at = death;
      try {
        publish_run(store, folder.path("run"), replaces);
        finished = true;
      } catch (const StoreUnreachable&) {
        store.dies_at = -1;
        check_store(store, folder.path("run"), replaces);
        publish_run(store, folder.path("run"), replaces);
      }
      ASSERT_EQ(store.files, runs.back()) << "after death at " << death;
      ASSERT_LT(death, 100);
    }
  }
}

TEST(Publish, ResumesWhereItBrokeOff) {
  const TempFolder folder;
  const Files run = make_run(folder, "a", 4);
  MemoryStore store;
  store.dies_at = 18;
  EXPECT_THROW(publish_run(store, folder.path("run"), false), StoreUnreachable);
  store.dies_at = -1;
  EXPECT_TRUE(is_unpublished(store, folder.path("run")));
  const int64_t rest = publish_run(store, folder.path("run"), false);
  EXPECT_FALSE(is_unpublished(store, folder.path("run")));
  EXPECT_GT(rest, 2);
  EXPECT_LT(rest, 8) << "what was put is not put again";
  EXPECT_EQ(store.files, run);
}

TEST(Publish, ChangedObjectsAreUploadedAgain) {
  const TempFolder folder;
  const Files run = make_run(folder, "a", 3);
  MemoryStore store;
  publish_run(store, folder.path("run"), false);
  const std::vector<std::function<void(Files&)>> damages = {
      [](Files& files) { files.erase("rows-00001.jsonl"); },
      [](Files& files) { files["rows-00001.jsonl"].clear(); },
      [](Files& files) { files["rows-00001.jsonl"].pop_back(); },
      [](Files& files) { files["rows-00001.jsonl"][0] ^= 1; },
      [](Files& files) { files["manifest.json"].pop_back(); },
      [](Files& files) { files.erase("_SUCCESS"); },
      [](Files& files) { files.erase("_SUCCESS"), files.erase("manifest.json"); },
      [](Files& files) { files.clear(); }};
  for (size_t i = 0; i < damages.size(); ++i) {
    damages[i](store.files);
    // Whose files those beside a damaged manifest are, nobody can say.
    const bool replace = i == 4;
    if (replace) {
      EXPECT_NE(error_of([&] { publish_run(store, folder.path("run"), false); }), "");
    }
    EXPECT_GT(publish_run(store, folder.path("run"), replace), 0) << i;
    EXPECT_EQ(store.files, run) << i;
    EXPECT_EQ(publish_run(store, folder.path("run"), false), 0) << i;
  }
}

TEST(Publish, ANewerRunIsNotOverwritten) {
  // A's publication ends, or breaks off somewhere; B replaces it, wholly or up to some operation; A comes
  // back.
  for (int64_t a_dies = -1; a_dies < 34; ++a_dies)
    for (int64_t b_dies = -1; b_dies < 44; b_dies += 3) {
      const TempFolder folder(quick_place());
      make_run(folder, "a", 3, "a");
      const Files b = make_run(folder, "b", 3, "b");
      MemoryStore store;
      store.dies_at = a_dies;
      try {
        publish_run(store, folder.path("a"), false);
      } catch (const StoreUnreachable&) {
      }
      const Files of_a = store.files;
      store.operations = 0;
      store.dies_at = b_dies;
      try {
        check_store(store, folder.path("b"), true);
        publish_run(store, folder.path("b"), true);
      } catch (const StoreUnreachable&) {
      }
      store.dies_at = -1;
      if (store.files == of_a) continue;  // B did nothing yet
      const Files before = store.files;
      EXPECT_NE(error_of([&] { check_store(store, folder.path("a"), false); }), "");
      EXPECT_NE(error_of([&] { publish_run(store, folder.path("a"), false); }), "");
      ASSERT_EQ(store.files, before) << a_dies << " " << b_dies;
      publish_run(store, folder.path("b"), true);
      EXPECT_EQ(store.files, b);
    }
}

TEST(Publish, TwoAtOnceDoNotBothSucceed) {
  for (const char* meanwhile : {"_publishing", "rejects.jsonl", "rows-00000.jsonl", "rows-00001.jsonl",
                                "manifest.json", "_SUCCESS"}) {
    const TempFolder folder;
    make_run(folder, "a", 2, "a");
    const Files b = make_run(folder, "b", 2, "b");
    MemoryStore store;
    store.meanwhile = meanwhile;
    store.then = [&] { publish_run(store, folder.path("b"), true); };
    EXPECT_NE(error_of([&] { publish_run(store, folder.path("a"), false); }), "");
    if (store.files.contains("_SUCCESS")) {
      EXPECT_EQ(store.files, b);
    }
    publish_run(store, folder.path("b"), true);
    EXPECT_EQ(store.files, b);
  }
}

TEST(Publish, AnotherRunOfTheSameJobIsPublishedWhole) {
  const TempFolder folder;
  Files run = make_run(folder, "a", 3);
  MemoryStore store;
  publish_run(store, folder.path("run"), false);
  // The manifest is the same, the report is not; notes of the last publication may be there.
  run["report.json"] = "{} in another time";
  folder.write("run/report.json", run["report.json"]);
  publish_run(store, folder.path("run"), true);
  EXPECT_EQ(store.files, run);
  EXPECT_EQ(publish_run(store, folder.path("run"), false), 0);
}

TEST(Publish, ForeignObjectsAmongTheRowsAreRemoved) {
  const TempFolder folder;
  const Files run = make_run(folder, "a", 3);
  MemoryStore store;
  publish_run(store, folder.path("run"), false);
  store.files["rows-00007.jsonl"] = "of nobody";
  EXPECT_GT(publish_run(store, folder.path("run"), false), 0);
  EXPECT_EQ(store.files, run);
}

TEST(Publish, AnEmptyClaimIsIgnored) {
  const TempFolder folder;
  const Files run = make_run(folder, "a", 3);
  MemoryStore store;
  store.files["_publishing"] = "";
  publish_run(store, folder.path("run"), false);
  EXPECT_EQ(store.files, run);
}

TEST(Publish, DamagedRowsAreNotPublished) {
  const TempFolder folder;
  make_run(folder, "a", 3);
  folder.write("run/rows-00001.jsonl", "b1");
  MemoryStore store;
  EXPECT_NE(
      error_of([&] { publish_run(store, folder.path("run"), false); }).find("does not match its manifest"),
      std::string::npos);
  EXPECT_FALSE(store.files.contains("_SUCCESS"));
  EXPECT_FALSE(store.files.contains("rows-00001.jsonl"));
}

TEST(Publish, ARestartDecodesAgainOnceTheLastWasPublished) {
  const TempFolder folder;
  make_run(folder, "a", 3);
  MemoryStore store;
  store.dies_at = 12;
  EXPECT_THROW(publish_run(store, folder.path("run"), false), StoreUnreachable);
  store.dies_at = -1;
  EXPECT_TRUE(is_unpublished(store, folder.path("run")));
  publish_run(store, folder.path("run"), false);
  EXPECT_FALSE(is_unpublished(store, folder.path("run")));
  store.files.erase("rows-00000.jsonl");
  EXPECT_FALSE(is_unpublished(store, folder.path("run"))) << "its publication had ended";
}

TEST(Publish, ARunThatIsBeingPublishedIsNotOverwritten) {
  const TempFolder folder;
  make_run(folder, "new", 1);
  MemoryStore store;
  store.files = {{"rows-00000.jsonl", "of another run, whose manifest comes last"}};
  const Files before = store.files;
  for (const bool claimed : {false, true}) {
    if (claimed) store.files["_publishing"] = "of the other";
    EXPECT_NE(error_of([&] { check_store(store, folder.path("run"), false); }).find("another run is being"),
              std::string::npos);
    EXPECT_NE(error_of([&] { publish_run(store, folder.path("run"), false); }).find("another run is being"),
              std::string::npos);
    store.files.erase("_publishing");
    EXPECT_EQ(store.files, before);
  }
}

TEST(Publish, ObjectsOfOthersAreKept) {
  const TempFolder folder;
  MemoryStore store;
  make_run(folder, "old", 1);
  publish_run(store, folder.path("run"), false);
  const Files before = store.files;
  make_run(folder, "new", 1);
  const std::string refusal =
      "s3://b/run: another run is published there; add --restart to replace it, or choose another "
      "output.path";
  EXPECT_EQ(error_of([&] { check_store(store, folder.path("run"), false); }), refusal);
  EXPECT_EQ(error_of([&] { publish_run(store, folder.path("run"), false); }), refusal);
  EXPECT_EQ(store.files, before);
  store.files = {{"thesis.docx", "years of work"}};
  EXPECT_EQ(
      error_of([&] { check_store(store, folder.path("run"), true); }),
      "s3://b/run: the folder holds other files than those of a run, such as thesis.docx; choose another "
      "output.path");
}

}  // namespace
}  // namespace sheaf

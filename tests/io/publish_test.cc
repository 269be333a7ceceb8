// A run that goes to a store: whatever breaks off, _SUCCESS stands for one whole run, and trying again ends
// well.
#include "io/run_folder/publish.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <map>

#include "tests/io/temp_folder.h"

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
  std::vector<std::string> list() override {
    live();
    std::vector<std::string> names;
    for (const auto& [name, text] : files) names.push_back(name);
    return names;
  }
  std::optional<std::string> read(const std::string& file) override {
    live();
    const auto found = files.find(file);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  }
  void put(const std::string& file, std::string_view text) override {
    change([&] { files[file] = text; });
  }
  void put_file(const std::string& file, const std::string& local) override { put(file, read_file(local)); }
  void remove(const std::string& file) override {
    change([&] { files.erase(file); });
  }

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
};

Files make_run(const TempFolder& folder, const std::string& mark, int rows) {
  Files files;
  for (int i = 0; i < rows; ++i) files["rows-0000" + std::to_string(i) + ".jsonl"] = mark + std::to_string(i);
  files["rejects.jsonl"] = mark;
  files["report.json"] = "{}" + mark;
  files["manifest.json"] = "{\"run\": \"" + mark + "\"}";
  files["_SUCCESS"] = "";
  std::filesystem::remove_all(folder.path("run"));
  for (const auto& [name, text] : files) folder.write("run/" + name, text);
  for (const char* own : {"journal", "progress.json", ".lock", "rows-00009.jsonl.part"})
    folder.write(std::string("run/") + own, "own");
  return files;
}

/// Sees that _SUCCESS never stands beside anything but one of these whole runs.
auto expect_whole(const std::vector<Files>& runs) {
  return [runs](const Files& files) {
    if (files.contains("_SUCCESS")) {
      EXPECT_NE(std::ranges::find(runs, files), runs.end());
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

TEST(Publish, PutsAWholeRunOnce) {
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

TEST(Publish, SurvivesDeathAtEveryOperation) {
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

TEST(Publish, GoesOnWhereItBrokeOff) {
  const TempFolder folder;
  const Files run = make_run(folder, "a", 4);
  MemoryStore store;
  store.dies_at = 9;
  EXPECT_THROW(publish_run(store, folder.path("run"), false), StoreUnreachable);
  store.dies_at = -1;
  EXPECT_TRUE(is_unpublished(store, folder.path("run")));
  const int64_t rest = publish_run(store, folder.path("run"), false);
  EXPECT_FALSE(is_unpublished(store, folder.path("run")));
  EXPECT_GT(rest, 2);
  EXPECT_LT(rest, 8) << "what was put is not put again";
  EXPECT_EQ(store.files, run);
}

TEST(Publish, WhatWasRemovedIsPutAgain) {
  const TempFolder folder;
  const Files run = make_run(folder, "a", 3);
  MemoryStore store;
  publish_run(store, folder.path("run"), false);
  store.files.erase("rows-00001.jsonl");
  EXPECT_TRUE(is_unpublished(store, folder.path("run")));
  EXPECT_EQ(publish_run(store, folder.path("run"), false), 3);
  EXPECT_EQ(store.files, run);
  store.files.clear();
  EXPECT_EQ(publish_run(store, folder.path("run"), false), 7);
  EXPECT_EQ(store.files, run);
}

TEST(Publish, ARunThatIsBeingPublishedIsSafe) {
  const TempFolder folder;
  make_run(folder, "new", 1);
  MemoryStore store;
  store.files = {{"rows-00000.jsonl", "of another run, whose manifest comes last"}};
  const Files before = store.files;
  EXPECT_NE(error_of([&] { check_store(store, folder.path("run"), false); }).find("another run"),
            std::string::npos);
  EXPECT_NE(error_of([&] { publish_run(store, folder.path("run"), false); }).find("another run"),
            std::string::npos);
  EXPECT_EQ(store.files, before);
}

TEST(Publish, OthersFilesAreSafe) {
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

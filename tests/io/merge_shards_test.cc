#include "io/run_folder/merge_shards.h"

#include <gtest/gtest.h>
#include <map>

#include "io/run_folder/row_line.h"
#include "io/run_folder/run_folder.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/io/folder_contents.h"

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// The finished folder of a shard: rows 10 × index to 10 × index + 9, one of them a reject.
std::string make_shard(const TempFolder& folder, const std::string& name, int index, int count,
                       int seed = 1) {
  RunFolderOptions options;
  options.path = folder.path(name);
  options.rows_per_file = 4;
  const int64_t first = 10 * index;
  options.first_row = first;
  options.fingerprint = {
      {"job", {{"seed", seed}}},
      {"shard", {{"index", index}, {"count", count}, {"first", first}, {"end", first + 10}}}};
  RunFolder run(real_files(), options);
  for (int64_t row = first; row < first + 10; row += 5) {
    for (int64_t i = row; i < row + 5; ++i) {
      if (i == first + 7) {
        Reject reject;
        reject.id = i;
        run.reject(reject);
      } else {
        run.row({i});
      }
    }
    run.commit(row + 5);
  }
  run.finish("{}\n");
  return options.path;
}

std::string merge_error(const TempFolder& folder, const std::vector<std::string>& shards) {
  return error_of([&] { merge_shards(real_files(), folder.path("out"), shards); });
}

TEST(Merge, JoinsInInputOrder) {
  const TempFolder folder;
  const std::vector<std::string> shards = {make_shard(folder, "b", 1, 3), make_shard(folder, "c", 2, 3),
                                           make_shard(folder, "a", 0, 3)};
  const Merged merged = merge_shards(real_files(), folder.path("out"), shards);
  EXPECT_EQ(merged.rows, 27);
  EXPECT_EQ(merged.rejects, 3);
  EXPECT_EQ(merged.files, 6);
  const auto files = contents(folder.path("out"));
  EXPECT_EQ(files.size(), 9u);
  std::string rows, expected;
  for (const auto& [name, text] : files)
    if (name.starts_with("rows-")) rows += text;
  for (int i = 0; i < 30; ++i)
    if (i % 10 != 7) expected += row_line({i}) + "\n";
  EXPECT_EQ(rows, expected);
  const json manifest = json::parse(files.at("manifest.json"));
  for (const json& file : manifest["files"]) {
    EXPECT_EQ(file["bytes"], files.at(file["name"]).size());
    EXPECT_EQ(file["sha256"], sha256(files.at(file["name"])));
  }
  RunFolderOptions whole;
  whole.path = folder.path("out");
  whole.fingerprint = {{"job", {{"seed", 1}}}, {"shard", nullptr}};
  EXPECT_TRUE(RunFolder(real_files(), whole).finished()) << "the merged folder is that of the whole job";
  const Merged again = merge_shards(real_files(), folder.path("out"), shards);
  EXPECT_TRUE(again.was_finished);
  EXPECT_FALSE(merged.was_finished);
  EXPECT_EQ(again.rows, 27);
  EXPECT_EQ(again.files, merged.files);
  // Not where a file is no longer what it was.
  folder.write("out/rows-00000.jsonl", "");
  EXPECT_NE(merge_error(folder, shards).find("is not empty"), std::string::npos);
}

TEST(Merge, RefusesGapsOverlapsAndStrangers) {
  const TempFolder folder;
  const std::string a = make_shard(folder, "a", 0, 3), b = make_shard(folder, "b", 1, 3),
                    c = make_shard(folder, "c", 2, 3);
  EXPECT_EQ(merge_error(folder, {a, c}), "shard 1/3 is missing; give its folder too");
  EXPECT_EQ(merge_error(folder, {a, b}), "shard 2/3 is missing; give its folder too");
  EXPECT_EQ(merge_error(folder, {b, c}), "shard 0/3 is missing; give its folder too");
  EXPECT_NE(merge_error(folder, {a, b, b, c}).find("are both shard 1/3"), std::string::npos);
  EXPECT_NE(merge_error(folder, {a, make_shard(folder, "four", 1, 4), c}).find("one of 4"),
            std::string::npos);
  EXPECT_NE(merge_error(folder, {a, make_shard(folder, "seed", 1, 3, 2), c})
                .find("job.seed is 1 in the first and 2 in the other"),
            std::string::npos);
  EXPECT_NE(merge_error(folder, {a, b, folder.path("none")}).find("no such folder"), std::string::npos);
  std::filesystem::remove(b + "/_SUCCESS");
  EXPECT_NE(merge_error(folder, {a, b, c}).find("is not finished"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.path("out"))) << "nothing was begun";
}

TEST(Merge, ForeignFilesInAHalfMergedFolderAreKept) {
  const TempFolder folder;
  const std::vector<std::string> shards = {make_shard(folder, "a", 0, 1)};
  folder.write("out/.merging", "");
  folder.write("out/notes.txt", "mine");
  folder.write("out/rows-00000.jsonl", "half");
  EXPECT_NE(merge_error(folder, shards).find("it contains notes.txt"), std::string::npos);
  EXPECT_EQ(read_text(folder.path("out/notes.txt")), "mine");
  std::filesystem::remove(folder.path("out/notes.txt"));
  EXPECT_EQ(merge_error(folder, shards), "no error");
}

TEST(Merge, AManifestMustAddUp) {
  const TempFolder folder;
  const std::string path = make_shard(folder, "a", 0, 1) + "/manifest.json";
  const ordered_json good = ordered_json::parse(read_text(path));
  std::vector<ordered_json> wrong(6, good);
  wrong[0]["files"] = ordered_json::array();
  for (const ordered_json& file : good["files"]) wrong[1]["files"].push_back(file);
  wrong[2]["files"][0]["rows"] = INT64_MAX;
  wrong[3]["rows"] = 1;
  wrong[4]["fingerprint"]["job"]["seed"] = 2;
  wrong[5]["files"].erase(wrong[5]["files"].size() - 1);
  for (const ordered_json& manifest : wrong) {
    folder.write("a/manifest.json", manifest.dump());
    EXPECT_NE(merge_error(folder, {folder.path("a")}).find("a/manifest.json"), std::string::npos);
  }
  folder.write("a/manifest.json", good.dump());
  EXPECT_EQ(merge_error(folder, {folder.path("a")}), "no error");
}

TEST(Merge, RefusesBytesThatAreNotTheManifests) {
  const TempFolder folder;
  const std::vector<std::string> shards = {make_shard(folder, "a", 0, 2), make_shard(folder, "b", 1, 2)};
  folder.write("b/rows-00001.jsonl", "{\"id\":99}\n");
  EXPECT_NE(merge_error(folder, shards).find("b/rows-00001.jsonl"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/_SUCCESS")));
}

}  // namespace
}  // namespace sheaf

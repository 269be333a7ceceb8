#include <cstdlib>
#include <gtest/gtest.h>

#include "io/base/globs.h"
#include "io/base/paths.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/fuzz.h"

namespace sheaf {
namespace {

std::string resolve(const std::string& written, const std::string& folder = "") {
  return resolve_path(written, folder, "job.yaml:2: input.path");
}

TEST(WrittenPath, IsTakenFromTheFolder) {
  EXPECT_EQ(resolve("a/b"), "a/b");
  EXPECT_EQ(resolve("../a"), "../a");
  EXPECT_EQ(resolve("a/b", "jobs"), "jobs/a/b");
  EXPECT_EQ(resolve("./a", "jobs"), "jobs/a");
  EXPECT_EQ(resolve("../out/x", "jobs"), "out/x");
  EXPECT_EQ(resolve("../../out", "a/jobs"), "out");
  EXPECT_EQ(resolve("../../out", "jobs"), "../out");
  EXPECT_EQ(resolve("../a", ".."), "../../a");
  EXPECT_EQ(resolve("..", "jobs"), ".");
  EXPECT_EQ(resolve(".", "jobs"), "jobs");
  EXPECT_EQ(resolve("/a/b", "jobs"), "/a/b");
  EXPECT_EQ(resolve("../*/[ab].jsonl", "jobs"), "*/[ab].jsonl");
  EXPECT_EQ(resolve("s3://bucket/a", "jobs"), "s3://bucket/a");
  EXPECT_EQ(resolve("", "jobs"), "");
}

TEST(WrittenPath, GoesThroughALinkAsTheSystemDoes) {
  const TempFolder folder;
  folder.write("real/jobs/job.yaml", "");
  folder.write("real/rows.jsonl", "");
  std::filesystem::create_directory_symlink(folder.path("real/jobs"), folder.path("link"));
  EXPECT_TRUE(std::filesystem::exists(resolve("../rows.jsonl", folder.path("link"))));
}

TEST(WrittenPath, ReplacesEnvironmentVariables) {
  ::setenv("SHEAF_DATA", "/data/x", 1);
  ::setenv("SHEAF_EMPTY", "", 1);
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(resolve("$SHEAF_DATA/a.jsonl", "jobs"), "/data/x/a.jsonl");
  EXPECT_EQ(resolve("a${SHEAF_DATA}b", "jobs"), "jobs/a/data/xb");
  EXPECT_EQ(resolve("~/a", "jobs"), "/home/me/a");
  EXPECT_EQ(resolve("~", "jobs"), "/home/me");
  EXPECT_EQ(resolve("~other/a"), "~other/a");
  EXPECT_EQ(resolve("$$SHEAF_DATA"), "$SHEAF_DATA");
  EXPECT_EQ(resolve("5$/a$"), "5$/a$");
  EXPECT_EQ(
      error_of([&] { resolve("$SHEAF_NONE/a"); }),
      "job.yaml:2: input.path: the environment variable SHEAF_NONE is not set; set it, or write the path "
      "without it");
  EXPECT_EQ(
      error_of([&] { resolve("${SHEAF_EMPTY}/a"); }),
      "job.yaml:2: input.path: the environment variable SHEAF_EMPTY is empty; set it, or write the path "
      "without it");
  for (const char* bad : {"${SHEAF_DATA", "${}", "${", "${a b}"})
    EXPECT_EQ(error_of([&] { resolve(bad); }),
              "job.yaml:2: input.path: write a variable as ${NAME}, not " + std::string(bad));
}

TEST(WrittenPath, AnyTextGivesAPathOrAnError) {
  const std::vector<std::string_view> words = {"$", "${", "}", "~", "/", "..", ".", "$HOME", "a", "://"};
  int64_t paths = 0, errors = 0;
  fuzz([&](std::mt19937_64& random) {
    const std::string error =
        error_of([&] { resolve(mutate("../$HOME/a", random, words), mutate("a/jobs", random, words)); });
    EXPECT_TRUE(error == "no error" || error.starts_with("job.yaml:2: input.path: ")) << error;
    ++(error == "no error" ? paths : errors);
  });
  EXPECT_GT(paths, 0);
  EXPECT_GT(errors, 0);
}

TEST(CommonFolder, EndsWithASlash) {
  EXPECT_EQ(common_folder({}), "");
  EXPECT_EQ(common_folder({"-"}), "");
  EXPECT_EQ(common_folder({"a.jsonl"}), "");
  EXPECT_EQ(common_folder({"x/y/a.jsonl"}), "x/y/");
  EXPECT_EQ(common_folder({"x/y/a.jsonl", "x/yy/a.jsonl"}), "x/");
  EXPECT_EQ(common_folder({"x/a.jsonl", "x/a.jsonl.gz"}), "x/");
  EXPECT_EQ(common_folder({"/x/a", "/y/a"}), "/");
  EXPECT_EQ(common_folder({"x/a", "y/a"}), "");
}

}  // namespace
}  // namespace sheaf

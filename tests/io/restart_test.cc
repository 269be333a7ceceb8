// A restart killed or failing at every operation: the folder holds the old run or the new one, whole, and the
// same command ends with the new one.
#include "io/run_folder/restart.h"

#include <gtest/gtest.h>

#include "io/run_folder/run_folder.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/io/faulty_files.h"

namespace sheaf {
namespace {

RunFolderOptions run_of(const std::string& path, int version) {
  RunFolderOptions options;
  options.path = path;
  options.fingerprint = {{"job", {{"method", {{"seed", version}}}}}};
  return options;
}

void write_run(FileLayer& files, RunFolderOptions options, int version) {
  RunFolder folder(files, std::move(options));
  if (folder.finished()) return;
  for (int64_t i = folder.position(); i < 3; ++i) {
    folder.row({10 * version + i});
    folder.commit(i + 1);
  }
  folder.finish("{}\n");
}

/// What `sheaf run --restart` does with the folder.
void restart(FileLayer& files, const std::string& path, bool keep) {
  settle_restart(files, path);
  Restart again(files, path, keep);
  RunFolderOptions options = run_of(again.building(), 2);
  options.restart = !again.is_begun(options.fingerprint);
  write_run(files, options, 2);
  again.swap();
}

std::string rows_of(const std::string& path) {
  return read_whole(path + "/rows-00000.jsonl").value_or("");
}

class RestartTest : public testing::TestWithParam<bool> {
 protected:
  /// Which of the two runs the folder holds, whole; 0: none.
  static int whole_run(const std::string& path) {
    if (!file_size(path + "/_SUCCESS")) return 0;
    for (const int version : {1, 2}) try {
        if (RunFolder(quick_files(), run_of(path, version)).finished() &&
            rows_of(path).starts_with(fmt::format("{{\"id\":{}0,", version)))
          return version;
      } catch (const Error&) {  // it is the other
      }
    return 0;
  }
};

TEST_P(RestartTest, LeavesAWholeRunAfterAFaultAtEveryOperation) {
  const bool exchanges = GetParam();
  for (const FaultKind kind : {FaultKind::error, FaultKind::kill_before, FaultKind::kill_after}) {
    bool ended = false;
    for (int at = 1; !ended; ++at) {
      const TempFolder folder(quick_place());
      const std::string out = folder.path("out");
      write_run(quick_files(), run_of(out, 1), 1);
      folder.write("out/notes.txt", "mine");
      FaultyFiles files(kind, at);
      files.can_exchange = exchanges;
      try {
        restart(files, out, false);
        ended = files.done() < at;
      } catch (const Killed&) {
      } catch (const Error&) {
      }
      // Between the two renames of a file system that cannot exchange, the old run is beside its place.
      if (exchanges) {
        ASSERT_NE(whole_run(out), 0) << "operation " << at;
      }
      settle_restart(quick_files(), out);
      ASSERT_NE(whole_run(out), 0) << "operation " << at;
      ASSERT_EQ(read_whole(out + "/notes.txt").value_or(""), "mine") << "operation " << at;
      restart(quick_files(), out, false);
      ASSERT_EQ(whole_run(out), 2) << "operation " << at;
      EXPECT_EQ(list_folder(folder.path("")), std::vector<std::string>{"out"}) << "operation " << at;
      EXPECT_EQ(read_whole(out + "/notes.txt").value_or(""), "mine");
      EXPECT_FALSE(file_size(out + "/.restart"));
    }
  }
}

TEST_P(RestartTest, TheOldRunIsKeptOnRequest) {
  bool ended = false;
  for (int at = 1; !ended; ++at) {
    const TempFolder folder(quick_place());
    const std::string out = folder.path("out");
    write_run(quick_files(), run_of(out, 1), 1);
    FaultyFiles files(FaultKind::kill_before, at);
    files.can_exchange = GetParam();
    try {
      restart(files, out, true);
      ended = files.done() < at;
    } catch (const Killed&) {
    }
    settle_restart(quick_files(), out);
    // Only where the first one was not finished does the second one replace the old run.
    if (whole_run(out) == 1) restart(quick_files(), out, true);
    ASSERT_EQ(whole_run(out), 2) << "operation " << at;
    ASSERT_EQ(whole_run(out + ".previous"), 1) << "operation " << at;
    EXPECT_EQ(list_folder(folder.path("")), (std::vector<std::string>{"out", "out.previous"}));
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, RestartTest, testing::Bool(), [](const auto& exchanges) {
  return exchanges.param ? "AreExchanged" : "AreRenamed";
});

TEST(Restart, ASecondRestartReplacesThePreviousRun) {
  const TempFolder folder;
  const std::string out = folder.path("out");
  write_run(quick_files(), run_of(out, 1), 1);
  restart(quick_files(), out, true);
  restart(quick_files(), out, true);
  EXPECT_TRUE(rows_of(out + ".previous").starts_with("{\"id\":20,"));
}

TEST(Restart, ForeignFoldersInTheWayAreKept) {
  const TempFolder folder;
  const std::string out = folder.path("out");
  write_run(quick_files(), run_of(out, 1), 1);
  folder.write("out.restart/mine.txt", "mine");
  EXPECT_NE(error_of([&] { restart(quick_files(), out, false); }).find("holds something else"),
            std::string::npos);
  std::filesystem::remove_all(out + ".restart");
  folder.write("out.previous/mine.txt", "mine");
  EXPECT_NE(error_of([&] { restart(quick_files(), out, true); }).find("it holds mine.txt"),
            std::string::npos);
  EXPECT_EQ(read_whole(out + ".previous/mine.txt"), "mine");
  EXPECT_TRUE(rows_of(out).starts_with("{\"id\":10,"));
  folder.write("other/mine.txt", "mine");
  EXPECT_NE(error_of([&] { restart(quick_files(), folder.path("other"), false); }).find("no run of sheaf"),
            std::string::npos);
}

TEST(Restart, ASecondRestartAtOnceIsRefused) {
  const TempFolder folder;
  const std::string out = folder.path("out");
  write_run(quick_files(), run_of(out, 1), 1);
  const Restart first(quick_files(), out, false);
  EXPECT_NE(error_of([&] { Restart(quick_files(), out, false); }).find("another process"), std::string::npos);
}

TEST(Restart, ThroughALinkTheFolderItselfIsReplaced) {
  const TempFolder folder;
  write_run(quick_files(), run_of(folder.path("disk/run"), 1), 1);
  std::filesystem::create_directory_symlink(folder.path("disk/run"), folder.path("out"));
  restart(quick_files(), folder.path("out"), false);
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("out")));
  EXPECT_TRUE(rows_of(folder.path("disk/run")).starts_with("{\"id\":20,"));
}

}  // namespace
}  // namespace sheaf

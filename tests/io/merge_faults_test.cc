// A merge under every fault: after each one it is run again, and the files it ends with are byte for byte
// those of a merge that nothing happened to.
#include <gtest/gtest.h>

#include "core/report/report.h"
#include "io/run_folder/merge_shards.h"
#include "io/run_folder/run_folder.h"
#include "tests/files.h"
#include "tests/io/faulty_files.h"
#include "tests/io/folder_contents.h"

namespace sheaf {
namespace {

class MergeFaults : public testing::Test {
 protected:
  void SetUp() override {
    for (int shard = 0; shard < 2; ++shard) shards_.push_back(make_shard(shard));
    merge_shards(quick_files(), folder_.path("whole"), shards_);
    expected_ = contents(folder_.path("whole"));
    ASSERT_EQ(expected_.size(), 9u) << "5 rows files, rejects, manifest, two reports, _SUCCESS";
  }

  /// A finished shard of ten corpus rows, one of them a reject.
  std::string make_shard(int index) {
    RunFolderOptions options;
    options.path = folder_.path("shard-" + std::to_string(index));
    options.rows_per_file = 4;
    options.first_row = 10 * index;
    options.fingerprint = {
        {"job", {{"seed", 1}}},
        {"shard",
         {{"index", index}, {"count", 2}, {"first", options.first_row}, {"end", options.first_row + 10}}}};
    RunFolder run(quick_files(), options);
    for (int64_t row = options.first_row; row < options.first_row + 10; row += 5) {
      for (int64_t i = row; i < row + 5; ++i) {
        if (i % 10 == 7)
          run.reject({});
        else
          run.row({i});
      }
      run.commit(row + 5);
    }
    run.finish(report_json({}).dump(2) + "\n");
    return options.path;
  }

  std::string out(const std::string& name = "") const {
    return name.empty() ? folder_.path("out") : folder_.path("out/" + name);
  }
  void fresh() const { std::filesystem::remove_all(out()); }
  /// False where the merge did not get to its end.
  bool merge(FileLayer& files) const {
    try {
      merge_shards(files, out(), shards_);
      return true;
    } catch (const Killed&) {
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::fatal) << error.what();
    }
    return false;
  }
  /// What _SUCCESS stands beside is whole, and without it the merge is simply run again.
  void check(bool done) const {
    const bool called_done = file_size(out("_SUCCESS")).has_value();
    if (called_done) {
      FolderContents found = contents(out());
      found.erase(".merging");
      ASSERT_EQ(found, expected_) << "called done";
    }
    if (called_done && !file_size(out(".merging"))) return;
    ASSERT_FALSE(done) << "a merge that was through is not any more";
    merge_shards(quick_files(), out(), shards_);
    ASSERT_EQ(contents(out()), expected_);
  }

  /// Loses power in twelve ways and checks what is left each time.
  void lose_power(const PowerLossFiles& files, bool done, TriedStates& tried) const {
    for (uint32_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE("operation " + std::to_string(files.done()) + ", seed " + std::to_string(seed));
      files.lose_power(seed);
      if (done || tried.is_new(out())) {
        ASSERT_NO_FATAL_FAILURE(check(done));
      }
    }
  }

  TempFolder folder_{quick_place()};
  std::vector<std::string> shards_;
  FolderContents expected_;
};

TEST_F(MergeFaults, ResumesAfterAFaultAtEveryOperation) {
  TriedStates tried;
  for (FaultKind kind : {FaultKind::error, FaultKind::short_write, FaultKind::kill_before,
                         FaultKind::kill_in_write, FaultKind::kill_after}) {
    int faults = 0;
    for (int at = 1;; ++at) {
      SCOPED_TRACE("operation " + std::to_string(at) + ", kind " + std::to_string(static_cast<int>(kind)));
      fresh();
      FaultyFiles files(kind, at);
      const bool done = merge(files);
      if (done || tried.is_new(out())) {
        ASSERT_NO_FATAL_FAILURE(check(done));
      }
      if (done) break;
      ++faults;
    }
    EXPECT_GT(faults, 40);
  }
}

TEST_F(MergeFaults, ResumesAfterPowerLossAtEveryOperation) {
  TriedStates tried;
  int losses = 0;
  for (bool done = false; !done; ++losses) {
    fresh();
    PowerLossFiles files(out(), losses + 1);
    done = merge(files);
    ASSERT_NO_FATAL_FAILURE(lose_power(files, done, tried));
  }
  EXPECT_GT(losses, 40);
}

TEST_F(MergeFaults, ResumesAfterPowerLossWhileMergingAgain) {
  FaultyFiles count(FaultKind::error, 0);
  fresh();
  ASSERT_TRUE(merge(count));
  TriedStates tried;
  for (const int first : {count.done() / 2, count.done() - 1, count.done()}) {
    SCOPED_TRACE("after operation " + std::to_string(first));
    fresh();
    FaultyFiles killed(FaultKind::kill_before, first);
    ASSERT_FALSE(merge(killed));
    if (!file_size(out(".merging"))) continue;  // it was through but for a sync
    const FolderContents left = contents(out());
    bool done = false;
    for (int at = 1; !done; ++at) {
      put_back(out(), left);
      PowerLossFiles files(out(), at);
      done = merge(files);
      ASSERT_NO_FATAL_FAILURE(lose_power(files, done, tried));
    }
  }
}

}  // namespace
}  // namespace sheaf

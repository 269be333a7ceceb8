#include <gtest/gtest.h>

#include "io/base/process.h"
#include "tests/files.h"

namespace sheaf {
namespace {

TEST(UsableCores, WithoutALimitEveryCoreCounts) {
  const TempFolder root;
  EXPECT_EQ(usable_cores(root.path()).limit, 0);
  EXPECT_EQ(usable_cores(root.path()).threads(), usable_cores(root.path()).cores);
  root.write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_cores(root.path()).limit, 0);
}

TEST(UsableCores, AContainerSeesItsOwnGroupAsTheRoot) {
  const TempFolder root;
  root.write("proc/self/cgroup", "0::/\n");
  root.write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(usable_cores(root.path()).limit, 1.5);
}

TEST(UsableCores, TheSmallestLimitOfAGroupAndThoseAboveItCounts) {
  const TempFolder root;
  root.write("proc/self/cgroup", "0::/jobs/night/one\n");
  root.write("sys/fs/cgroup/jobs/night/one/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/jobs/night/cpu.max", "50000 100000\n");
  root.write("sys/fs/cgroup/jobs/cpu.max", "400000 100000\n");
  EXPECT_EQ(usable_cores(root.path()).limit, 0.5);
  EXPECT_EQ(usable_cores(root.path()).threads(), 1);
}

TEST(UsableCores, ControlGroupsOfVersion1AreRead) {
  const TempFolder root;
  root.write("proc/self/cgroup", "12:memory:/docker/1f\n4:cpu,cpuacct:/docker/1f\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/cpu/docker/1f/cpu.cfs_quota_us", "300000\n");
  root.write("sys/fs/cgroup/cpu/docker/1f/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_cores(root.path()).limit, 3);
}

TEST(UsableCores, ThreadsAreNoMoreThanCoresAndAtLeastOne) {
  EXPECT_EQ((UsableCores{8, 0}).threads(), 8);
  EXPECT_EQ((UsableCores{8, 2.4}).threads(), 2);
  EXPECT_EQ((UsableCores{8, 2.5}).threads(), 3);
  EXPECT_EQ((UsableCores{8, 0.2}).threads(), 1);
  EXPECT_EQ((UsableCores{2, 16}).threads(), 2);
}

TEST(UsableCores, UnreadableLimitsAreIgnored) {
  for (const char* text : {"", "x y\n", "0 0\n", "100000\n", "-5 100000\n", "1 -1\n"}) {
    const TempFolder root;
    root.write("proc/self/cgroup", "::\n:\n0::\n");
    root.write("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(usable_cores(root.path()).limit, 0) << text;
  }
}

}  // namespace
}  // namespace sheaf

#include <gtest/gtest.h>

#include "io/base/process.h"

namespace sheaf {
namespace {

TEST(ProcessUse, GrowsAsTheProcessWorks) {
  const ProcessUse before = process_use();
  volatile double sum = 0;
  while (process_use().seconds - before.seconds < 0.02) sum = sum + 1;
  EXPECT_GE(process_use().interruptions, before.interruptions);
}

TEST(ProcessUse, ManyInvoluntarySwitchesMeanADisturbedMeasurement) {
  const ProcessUse before{1, 100};
  EXPECT_FALSE(disturbed(before, {3, 100}, 1, 2));
  EXPECT_FALSE(disturbed(before, {3, 160}, 1, 2));
  EXPECT_TRUE(disturbed(before, {3, 600}, 1, 2));
  EXPECT_FALSE(disturbed(before, {3, 600}, 10, 2));
}

}  // namespace
}  // namespace sheaf

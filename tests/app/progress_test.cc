#include "app/progress.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/app/program.h"

namespace sheaf {
namespace {

TEST(Progress, SaysRateTimeLeftRejectsAndCost) {
  EXPECT_EQ(progress_line(20, 60, 0, 10, 0), "20 of 60 records, 2.0/s, 0:20 left");
  EXPECT_EQ(progress_line(20, 10060, 40, 10, 0.001),
            "20 of 10060 records, 2.0/s, 1:23:20 left, 40 rejects, $0.0100");
  EXPECT_EQ(progress_line(20, std::nullopt, 0, 10, 0), "20 records, 2.0/s");
  EXPECT_EQ(progress_line(20, 60, 0, 10, 0, true), "20 of about 60 records, 2.0/s, 0:20 left");
  EXPECT_EQ(progress_line(0, 60, 0, 0, 0), "0 of 60 records, 0.0/s") << "no time left is known yet";
}

TEST(Progress, LogGetsTheLastStateOnceWithTheTime) {
  const test::Scratch scratch;
  {
    Progress progress(true, 40, scratch.write("log", "before\n"));
    progress.update(1, 0, 0);
    progress.update(39, 1, 0);
    progress.close();
    progress.update(40, 1, 0);
  }
  const std::string log = test::read_text(scratch.file("log"));
  ASSERT_EQ(log.rfind("before\n", 0), 0u) << log;
  const std::string line = log.substr(7);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << log;
  EXPECT_EQ(line.find("Z 39 of 40 records"), 19u) << log;
  EXPECT_NE(line.find("1 rejects"), std::string::npos) << log;
}

TEST(Progress, RefusesALogThatCannotBeWritten) {
  const test::Scratch scratch;
  EXPECT_THROW(Progress(true, 40, scratch.file("no/such/log")), Error);
}

}  // namespace
}  // namespace sheaf

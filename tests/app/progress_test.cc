#include "app/progress.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/app/program.h"

namespace sheaf {
namespace {

TEST(Progress, ShowsRateTimeLeftRejectsAndCost) {
  EXPECT_EQ(progress_line({{20, 0, 900}, 60, 10}), "20 of 60 records (33 %), 2.0/s, 20 s left");
  EXPECT_EQ(progress_line({{20, 40, 900, 0.001}, 10060, 10}),
            "20 of 10060 records (0 %), 2.0/s, 1 h 23 min left, 40 rejects, $0.0100");
  EXPECT_EQ(progress_line({{20, 1, 900}, std::nullopt, 10}), "20 records, 2.0/s, 1 reject");
  EXPECT_EQ(progress_line({{20, 0, 900}, 60, 10, true}), "20 of about 60 records (33 %), 2.0/s, 20 s left");
  EXPECT_EQ(progress_line({{0, 0, 9000}, 1, 2}), "0 of 1 record (0 %), 4,500 tokens/s");
  EXPECT_EQ(progress_line({{}, 60, 0}), "0 of 60 records (0 %)") << "no time left is known yet";
}

TEST(Progress, ABarIsFullAtTheEnd) {
  EXPECT_EQ(progress_bar({}, 40), "[                    ]");
  EXPECT_EQ(progress_bar({19, 1}, 40), "[##########          ]");
  EXPECT_EQ(progress_bar({39, 0}, 40), "[################### ]");
  EXPECT_EQ(progress_bar({39, 1}, 40), "[####################]");
  EXPECT_EQ(progress_bar({50, 1}, 40), "[####################]") << "a guess was too low";
  EXPECT_EQ(progress_bar({50, 1}, std::nullopt), "");
}

TEST(Progress, TheLogEndsWithTheLastStateAndItsTime) {
  const TempFolder scratch;
  RunListener nobody;
  LoggedRun run({.log = scratch.write("log", "before\n"), .metrics = ""}, Job(), nobody);
  run.started(40);
  run.step({1});
  run.step({39, 1});
  run.ended();
  const std::string log = read_text(scratch.path("log"));
  ASSERT_EQ(log.rfind("before\n", 0), 0u) << log;
  const std::string line = log.substr(7);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << log;
  EXPECT_EQ(line.find("Z 39 of 40 records"), 19u) << log;
  EXPECT_NE(line.find(", 1 reject"), std::string::npos) << log;
}

TEST(Progress, RefusesALogThatCannotBeWritten) {
  const TempFolder scratch;
  EXPECT_THROW(RunLog(scratch.path("no/such/log"), false), Error);
}

}  // namespace
}  // namespace sheaf

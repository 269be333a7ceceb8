// The quick part of `make soak`; resume_test.cc kills runs.
#include <gtest/gtest.h>

#include "tests/app/program.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

TEST(Soak, ALongCorpusKeepsItsOrderInConstantMemory) {
  SKIP_UNLESS(!test::kAddressSanitizer, test::Lacking::plain_memory,
              "the address sanitizer's own memory grows");
  const TempFolder scratch;
  const test::Ran ran =
      test::run_shell(scratch, "tools/soak --sheaf " SHEAF_BINARY " --kills 0 --rows 20000 2>&1");
  EXPECT_EQ(ran.exit_code, 0) << ran.out;
  EXPECT_NE(ran.out.find("20000 as parquet"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace sheaf

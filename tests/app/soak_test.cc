// The quick part of `make soak`; resume_test.cc kills runs.
#include <gtest/gtest.h>

#include "tests/app/program.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

TEST(Soak, ALongCorpusComesOutInOrderAndTakesNoMoreMemory) {
  SKIP_UNLESS(!test::kAddressSanitizer, test::Lacking::plain_memory,
              "the address sanitizer's own memory grows");
  const test::Scratch scratch;
  const std::string command = "tools/soak --sheaf " + std::string(SHEAF_BINARY) +
                              " --kills 0 --rows 20000 >" + scratch.file("said") + " 2>&1";
  const int status = std::system(command.c_str());
  const std::string said = test::read_text(scratch.file("said"));
  EXPECT_EQ(status, 0) << said;
  EXPECT_NE(said.find("20000 as parquet"), std::string::npos) << said;
}

}  // namespace
}  // namespace sheaf

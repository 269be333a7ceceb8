// The quick part of `make soak`; resume_test.cc kills runs.
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

TEST(Soak, ALongCorpusComesOutInOrderAndTakesNoMoreMemory) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer's own memory grows";
#endif
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

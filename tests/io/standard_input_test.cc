#include <gtest/gtest.h>
#include <unistd.h>

#include "io/corpus/corpus.h"
#include "tests/files.h"

namespace sheaf {
namespace {

TEST(StandardInput, AStopBeforeTheWaitEndsTheWait) {
  const TempFolder folder;
  // Open, and nothing comes.
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const int before = ::dup(STDIN_FILENO);
  ASSERT_EQ(::dup2(pipe[0], STDIN_FILENO), STDIN_FILENO);
  Job job;
  job.output.path = folder.path("out");
  const std::atomic<bool> stop = true;
  EXPECT_EQ(copy_standard_input(job, stop), nullptr);
  ::dup2(before, STDIN_FILENO);
  for (const int file : {before, pipe[0], pipe[1]}) ::close(file);
}

}  // namespace
}  // namespace sheaf

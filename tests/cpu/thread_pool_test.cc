#include "core/base/thread_pool.h"

#include <chrono>
#include <gtest/gtest.h>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sheaf {
namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (int round = 0; round < 500; ++round) {
      std::vector<int> seen(static_cast<size_t>(round % 23));
      pool.run(static_cast<int64_t>(seen.size()), [&](int64_t task, int thread) {
        ASSERT_GE(thread, 0);
        ASSERT_LT(thread, threads);
        ++seen[static_cast<size_t>(task)];
      });
      for (const int count : seen) ASSERT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, WakesAfterASleep) {
  ThreadPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::atomic<int> sum = 0;
    pool.run(100, [&](int64_t task, int) { sum += static_cast<int>(task); });
    EXPECT_EQ(sum, 4950);
  }
}

TEST(ThreadPool, ThrowsWhatATaskThrew) {
  ThreadPool pool(2);
  const auto broken = [](int64_t task, int) {
    if (task == 7) throw std::runtime_error("seven");
  };
  EXPECT_THROW(pool.run(20, broken), std::runtime_error);
  int runs = 0;
  pool.run(1, [&](int64_t, int) { ++runs; });
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace sheaf

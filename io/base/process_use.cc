#include "io/base/process_use.h"

#include <sys/resource.h>

namespace sheaf {

ProcessUse process_use() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_nivcsw};
}

bool disturbed(const ProcessUse& before, const ProcessUse& after, double seconds, int threads) {
  // A second and thread. A quiet machine has up to 35 by the process's own threads, one with as many others
  // 250.
  constexpr double kMost = 80;
  return static_cast<double>(after.interruptions - before.interruptions) > kMost * seconds * threads;
}

}  // namespace sheaf

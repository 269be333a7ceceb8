#pragma once
#include "core/estimate/device_profile.h"
#include "io/jobs/bench.h"

namespace sheaf {

struct StepTime {
  StageSeconds device;  ///< all zero where the backend does not say
  double wall = 0;
};

/// Times made-up steps of one model. Takes the stages from the backend's own clocks.
class ProbeTimer {
 public:
  explicit ProbeTimer(const BenchModel& model);

  const Backend& backend() const { return made_.backend(); }
  bool fits(const Probe& probe) const { return probe.pages(kPageSize) <= most_pages_; }
  StepTime time_step(const Probe& probe);

 private:
  BenchBackend made_;
  int threads_;  ///< of a processor, which other programs may use, too; 0: a GPU
  int64_t most_pages_ = 0;
  int32_t pages_ = 1;
};

}  // namespace sheaf

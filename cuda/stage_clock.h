#pragma once
#include <array>
#include <cuda_runtime.h>
#include <deque>
#include <vector>

#include "core/engine/backend.h"
#include "cuda/base/device_memory.h"

namespace sheaf::cuda {

/// Seconds of the device over many steps.
struct StageTimes {
  std::array<double, kStageNames.size()> stages{};  ///< of the steps timed in detail
  double detailed = 0;                              ///< all of those steps
  double total = 0;                                 ///< all steps

  /// All steps by stage, as if those timed in detail were like the others; empty where none was.
  TimedStages by_stage() const {
    TimedStages result;
    for (size_t i = 0; i < stages.size() && detailed > 0; ++i)
      result.emplace_back(static_cast<Stage>(i), stages[i] * total / detailed);
    return result;
  }
};

/// Where the device's time goes: events after every stage of a step. One clock for each step in flight.
class StageClock {
 public:
  /// Starts a step; only a `detailed` one is timed stage by stage.
  void begin(bool detailed, cudaStream_t stream) {
    stages_.clear();
    detailed_ = detailed;
    stream_ = stream;
    record();
  }
  /// What was launched since the last mark is of this stage.
  void mark(Stage stage) {
    if (!detailed_) return;
    stages_.push_back(stage);
    record();
  }
  void end() {
    stages_.push_back(Stage::other);
    record();
  }
  /// Of a step that is finished.
  void add_to(StageTimes& times) const {
    for (size_t i = 0; i < stages_.size(); ++i) {
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, events_[i].get(), events_[i + 1].get()), "timing a step");
      times.total += milliseconds / 1000.0;
      if (!detailed_) continue;
      times.detailed += milliseconds / 1000.0;
      times.stages[static_cast<size_t>(stages_[i])] += milliseconds / 1000.0;
    }
  }

 private:
  void record() {
    const size_t at = stages_.size();
    if (at == events_.size()) events_.emplace_back();
    check(cudaEventRecord(events_[at].get(), stream_), "timing a step");
  }

  bool detailed_ = false;
  cudaStream_t stream_ = nullptr;
  std::deque<Event> events_;
  std::vector<Stage> stages_;
};

}  // namespace sheaf::cuda

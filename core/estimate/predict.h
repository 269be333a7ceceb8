#pragma once
#include <algorithm>
#include <deque>

#include "core/engine/backend.h"
#include "core/estimate/device_model.h"

namespace sheaf {

/// What steps are predicted to take, summed as an engine runs them. Where a backend takes two steps at once
/// the host's work on one passes while the other runs.
class PredictedTime final : public StepObserver {
 public:
  PredictedTime(const ModelConfig& config, const DeviceModel& device)
      : config_(config), device_(device), group_(config.heads / config.kv_heads) {}

  /// Costs microseconds.
  void start(const StepBatch& batch) override {
    const StepCounts counts = count_step(batch, group_);
    const StageSeconds step = device_.step(config_, counts);
    stages_ += step;
    decode_ += counts.tokens > 0 ? (step.total() - step.pick) * counts.decode_tokens / counts.tokens : 0;
    now_ += device_.host_seconds(counts);
    busy_until_ = std::max(busy_until_, now_) + step.total();
    ends_.push_back(busy_until_);
  }
  void finish() override {
    now_ = std::max(now_, ends_.front());
    ends_.pop_front();
  }

  double seconds() const { return now_; }                 ///< until the last step was finished
  const StageSeconds& stages() const { return stages_; }  ///< seconds of the device
  double decode_seconds() const { return decode_; }       ///< seconds of decode tokens, without picks
  double host_seconds() const { return std::max(0.0, now_ - stages_.total()); }  ///< while the device waited

 private:
  ModelConfig config_;
  DeviceModel device_;
  int32_t group_;
  StageSeconds stages_;
  double decode_ = 0;
  double now_ = 0, busy_until_ = 0;
  std::deque<double> ends_;  ///< of the steps in flight
};

}  // namespace sheaf

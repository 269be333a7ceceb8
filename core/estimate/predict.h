#pragma once
#include <algorithm>
#include <deque>

#include "core/engine/backend.h"
#include "core/estimate/device_model.h"

namespace sheaf {

/// What steps are predicted to take, summed as an engine runs them. Where a backend takes two steps at once
/// the host's work on one passes while the other runs.
class PredictedTime {
 public:
  PredictedTime(const ModelConfig& config, const DeviceModel& device)
      : config_(config), device_(device), group_(config.heads / config.kv_heads) {}

  /// A step is started; costs microseconds.
  void start(const StepBatch& batch) {
    const StepCounts counts = count_step(batch, group_);
    const StageSeconds step = device_.step(config_, counts);
    stages_ += step;
    decode_ += counts.tokens > 0 ? (step.total() - step.pick) * counts.decode_tokens / counts.tokens : 0;
    now_ += device_.host_seconds(counts);
    busy_until_ = std::max(busy_until_, now_) + step.total();
    ends_.push_back(busy_until_);
  }
  /// The oldest step started is waited for.
  void finish() {
    now_ = std::max(now_, ends_.front());
    ends_.pop_front();
  }

  double seconds() const { return now_; }                 ///< until the last step was finished
  const StageSeconds& stages() const { return stages_; }  ///< of the device
  double decode_seconds() const { return decode_; }       ///< of it, for rows of answers, picks not counted
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

/// A backend with a prediction beside it: hands every call on.
class PredictedBackend final : public Backend {
 public:
  PredictedBackend(Backend& backend, const DeviceModel& device)
      : backend_(backend), time_(backend.config(), device) {}

  const PredictedTime& time() const { return time_; }

  const ModelConfig& config() const override { return backend_.config(); }
  std::string describe() const override { return backend_.describe(); }
  std::string device() const override { return backend_.device(); }
  void allocate_kv(int32_t pages, int32_t page_size) override { backend_.allocate_kv(pages, page_size); }
  std::string kv_kind() const override { return backend_.kv_kind(); }
  int64_t kv_slot_bytes(KvForm form) const override { return backend_.kv_slot_bytes(form); }
  void read_kv(std::span<const int32_t> slots, std::span<std::byte> to, KvForm form) override {
    backend_.read_kv(slots, to, form);
  }
  void write_kv(std::span<const int32_t> slots, std::span<const std::byte> from, KvForm form) override {
    backend_.write_kv(slots, from, form);
  }
  std::shared_ptr<std::byte> host_memory(int64_t bytes) override { return backend_.host_memory(bytes); }
  bool grows_kv() const override { return backend_.grows_kv(); }
  void grow_kv(int32_t pages) override { backend_.grow_kv(pages); }
  int64_t kv_bytes_per_token() const override { return backend_.kv_bytes_per_token(); }
  bool wants_whole_pages() const override { return backend_.wants_whole_pages(); }
  int32_t steps_at_once() const override { return backend_.steps_at_once(); }
  int32_t preferred_tokens() const override { return backend_.preferred_tokens(); }
  TimedStages stage_seconds() const override { return backend_.stage_seconds(); }
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    backend_.step(batch, picked, logits);
    time_.start(batch);
    time_.finish();
  }
  void start(const StepBatch& batch, std::span<Picked> picked) override {
    backend_.start(batch, picked);
    time_.start(batch);
  }
  void finish() override {
    time_.finish();
    backend_.finish();
  }

 private:
  Backend& backend_;
  PredictedTime time_;
};

}  // namespace sheaf

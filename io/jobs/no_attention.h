#pragma once
#include <deque>

#include "core/engine/backend.h"

namespace sheaf {

/// A backend whose tokens each see one key, so that a step takes the time of everything but attention: the
/// bound that no way of computing attention can beat. What it answers means nothing.
class NoAttention final : public Backend {
 public:
  explicit NoAttention(Backend& backend) : backend_(backend) {}

  const ModelConfig& config() const override { return backend_.config(); }
  std::string describe() const override { return backend_.describe(); }
  std::string device() const override { return backend_.device(); }
  void allocate_kv(int32_t pages, int32_t page_size) override { backend_.allocate_kv(pages, page_size); }
  bool grows_kv() const override { return backend_.grows_kv(); }
  void grow_kv(int32_t pages) override { backend_.grow_kv(pages); }
  int64_t kv_bytes_per_token() const override { return backend_.kv_bytes_per_token(); }
  bool wants_whole_pages() const override { return backend_.wants_whole_pages(); }
  int32_t steps_at_once() const override { return backend_.steps_at_once(); }
  int32_t preferred_tokens() const override { return backend_.preferred_tokens(); }
  TimedStages stage_seconds() const override { return backend_.stage_seconds(); }
  Routing routing() const override { return backend_.routing(); }

  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override;
  void start(const StepBatch& batch, std::span<Picked> picked) override;
  void finish() override;

 private:
  Backend& backend_;
  std::deque<StepBatch> flying_;  ///< batches of steps that are started and not finished
};

}  // namespace sheaf

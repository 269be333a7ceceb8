#pragma once

#include "core/engine/backend.h"

namespace sheaf {

/// A backend that computes nothing and always picks the first allowed token: the decode loop over it counts
/// the steps, rows and pages that a real one would need.
class CountingBackend : public Backend {
 public:
  CountingBackend(const ModelConfig& config, int64_t kv_bytes_per_token, int32_t rows)
      : config_(config), kv_bytes_per_token_(kv_bytes_per_token), rows_(rows) {}
  const ModelConfig& config() const override { return config_; }
  std::string describe() const override { return "nothing is computed"; }
  void allocate_kv(int32_t, int32_t) override {}
  int64_t kv_bytes_per_token() const override { return kv_bytes_per_token_; }
  int32_t preferred_tokens() const override { return rows_; }
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float>) override {
    for (size_t i = 0; i < picked.size(); ++i) {
      const Pick& pick = batch.picks[i];
      picked[i] = {pick.allowed_count > 0 ? batch.allowed[pick.first_allowed] : 0, 0.0f};
    }
  }

 private:
  const ModelConfig& config_;
  int64_t kv_bytes_per_token_;
  int32_t rows_;
};

}  // namespace sheaf

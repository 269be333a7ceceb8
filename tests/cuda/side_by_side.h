#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

#include "core/engine/backend.h"
#include "core/engine/step_batch.h"

namespace sheaf::test {

/// What rows of logits are off by, each as a share of the right row's length.
struct LogitErrors {
  double total = 0, worst = 0;
  int64_t rows = 0;

  void add(std::span<const float> got, std::span<const float> right) {
    double square = 0, error = 0;
    for (size_t i = 0; i < right.size(); ++i) {
      const double difference = static_cast<double>(got[i]) - static_cast<double>(right[i]);
      square += static_cast<double>(right[i]) * static_cast<double>(right[i]);
      error += difference * difference;
    }
    const double relative = std::sqrt(error / square);
    worst = std::max(worst, std::isfinite(relative) ? relative : 1e9);
    total += std::isfinite(relative) ? relative : 1e9;
    ++rows;
  }
  double mean() const { return total / static_cast<double>(std::max<int64_t>(rows, 1)); }

  void expect_below(double most_on_average, double most, const std::string& what) const {
    EXPECT_GT(rows, 0) << what;
    EXPECT_LT(mean(), most_on_average) << what;
    EXPECT_LT(worst, most) << what;
  }
  void print(const std::string& what) const {
    std::printf("%s: %lld rows of logits, mean error %.4f, worst %.4f\n", what.c_str(),
                static_cast<long long>(rows), mean(), worst);
  }
};

/// Runs every step on two backends and compares their logits; the tokens picked are those of `right`, the
/// logits handed out those of `tried`.
class SideBySide : public Backend {
 public:
  SideBySide(Backend& right, Backend& tried) : right_(right), tried_(tried) {}
  const ModelConfig& config() const override { return right_.config(); }
  std::string describe() const override { return "both"; }
  void allocate_kv(int32_t pages, int32_t page_size) override {
    right_.allocate_kv(pages, page_size);
    tried_.allocate_kv(pages, page_size);
  }
  int64_t kv_bytes_per_token() const override { return right_.kv_bytes_per_token(); }
  int32_t preferred_tokens() const override { return right_.preferred_tokens(); }
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    const auto vocab = static_cast<size_t>(config().vocab);
    std::vector<float> right(picked.size() * vocab), got(right.size(), NAN);
    std::vector<Picked> tried(picked.size());
    right_.step(batch, picked, right);
    tried_.step(batch, tried, got);
    for (size_t i = 0; i < picked.size(); ++i) {
      const auto row = std::span<const float>(got).subspan(i * vocab, vocab);
      errors.add(row, std::span<const float>(right).subspan(i * vocab, vocab));
      same_picks += tried[i].token == picked[i].token;
      if (batch.picks[i].temperature <= 0)
        worst_loss = std::max(worst_loss, right[i * vocab + static_cast<size_t>(picked[i].token)] -
                                              right[i * vocab + static_cast<size_t>(tried[i].token)]);
      // The choice itself must follow the backend's own logits exactly.
      const Pick& pick = batch.picks[i];
      const Picked own = pick_token(
          row, pick,
          std::span(batch.allowed)
              .subspan(static_cast<size_t>(pick.first_allowed), static_cast<size_t>(pick.allowed_count)));
      EXPECT_EQ(tried[i].token, own.token);
      EXPECT_NEAR(tried[i].logprob, own.logprob, 1e-3);
    }
    if (!logits.empty()) std::copy(got.begin(), got.end(), logits.begin());
  }
  LogitErrors errors;
  int64_t same_picks = 0;
  float worst_loss = 0;  ///< of a greedy pick: by how much the right logits prefer another token, in nats

 private:
  Backend& right_;
  Backend& tried_;
};

}  // namespace sheaf::test

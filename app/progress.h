#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace sheaf {

/// One line on the terminal that is rewritten a few times a second; nothing where standard error is not a
/// terminal.
class Progress {
 public:
  /// `total`: rows to come, where known.
  Progress(bool quiet, std::optional<int64_t> total);
  ~Progress();

  void update(int64_t items, int64_t rejects, double usd_per_second);
  /// Wipes the line.
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  bool shown_;
  std::optional<int64_t> total_;
  Clock::time_point start_ = Clock::now(), last_{};
};

}  // namespace sheaf

#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "app/run_log.h"
#include "io/jobs/run_job.h"

namespace sheaf {

/// "12 of 40 records (35 %), 1.9/s, 14 s left, 2 rejects, $0.0021". Before the first record is done, the rate
/// is that of the tokens.
std::string progress_line(const RunState& state, std::optional<int64_t> total, double seconds,
                          bool about = false);
/// "[#######             ]", or empty where the records to come are not known.
std::string progress_bar(const RunState& state, std::optional<int64_t> total);

/// Replaces the last line on standard error; `last` ends it with a newline. If standard error is not a
/// terminal, prints only the `last` line.
void rewrite_line(const std::string& text, bool last);

/// The progress of a run. On a terminal, one line that is rewritten a few times a second, without colours or
/// escape codes; elsewhere, a new line every half minute. The log and the metrics get the state every ten
/// seconds, and the last one.
class Progress {
 public:
  /// `quiet`: nothing on standard error. `total`: records to come, where known. `log`, `metrics`: null: none.
  Progress(bool quiet, std::optional<int64_t> total, RunLog* log = nullptr, RunMetrics* metrics = nullptr);
  ~Progress();

  void update(const RunState& state);
  /// Where the records to come are not known: how many it looks like.
  void guess(int64_t total);
  /// Wipes the line on a terminal; the log gets the last state.
  void close();

 private:
  using Clock = std::chrono::steady_clock;

  LoggedState logged() const;
  void rewrite(const std::string& line);
  void write_log();

  bool shown_, terminal_;
  std::optional<int64_t> total_;
  bool guessed_ = false;
  RunLog* log_;
  RunMetrics* metrics_;
  Clock::time_point start_ = Clock::now(), shown_at_ = start_, logged_at_ = start_;
  size_t columns_used_ = 0;  ///< of the terminal's line, to be wiped
  RunState state_;
};

/// Shows a run on standard error.
class ShownRun : public RunListener {
 public:
  /// `quiet`: only warnings, the log and the metrics, where there are such.
  explicit ShownRun(bool quiet, RunLog* log = nullptr, RunMetrics* metrics = nullptr)
      : quiet_(quiet), log_(log), metrics_(metrics) {}

  void note(const std::string& text) override;
  void warn(const std::string& text) override;
  void heading(const std::string& text) override;
  void begun(const RunBegin& run) override;
  void rejected(const Reject& reject) override;
  void started(std::optional<int64_t> records) override {
    progress_.emplace(quiet_, records, log_, metrics_);
  }
  void guess(int64_t records) override { progress_->guess(records); }
  void step(const RunState& state) override { progress_->update(state); }
  void ended() override { progress_.reset(); }

 private:
  bool quiet_;
  RunLog* log_;
  RunMetrics* metrics_;
  int64_t rejects_logged_ = 0;
  std::optional<Progress> progress_;
};

}  // namespace sheaf

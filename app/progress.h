#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "io/jobs/run_log.h"

namespace sheaf {

/// "[#######             ]", or empty where the records to come are not known.
std::string progress_bar(const RunState& state, std::optional<int64_t> total);

/// Replaces the last line on standard error; `last` ends it with a newline. If standard error is not a
/// terminal, prints only the `last` line.
void rewrite_line(const std::string& text, bool last);

/// The progress of a run. On a terminal, one line that is rewritten a few times a second, without colours or
/// escape codes; elsewhere, a new line every half minute.
class Progress {
 public:
  /// `total`: records to come, where known.
  Progress(bool quiet, std::optional<int64_t> total);
  ~Progress();

  void update(const RunState& state);
  /// Where the records to come are not known: how many it looks like.
  void guess(int64_t total);
  /// Wipes the line on a terminal.
  void close();

 private:
  using Clock = std::chrono::steady_clock;

  void rewrite(const std::string& line);

  bool shown_, terminal_;
  SessionState state_;
  Clock::time_point start_ = Clock::now(), shown_at_ = start_;
  size_t columns_used_ = 0;  ///< of the terminal's line, to be wiped
};

/// Shows a run on standard error.
class ShownRun : public RunListener {
 public:
  /// `quiet`: only warnings.
  explicit ShownRun(bool quiet) : quiet_(quiet) {}

  void note(const std::string& text) override;
  void warn(const std::string& text) override;
  void heading(const std::string& text) override;
  void started(std::optional<int64_t> records) override { progress_.emplace(quiet_, records); }
  void guess(int64_t records) override { progress_->guess(records); }
  void step(const RunState& state) override { progress_->update(state); }
  void ended() override { progress_.reset(); }

 private:
  bool quiet_;
  std::optional<Progress> progress_;
};

}  // namespace sheaf

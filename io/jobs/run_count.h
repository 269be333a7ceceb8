#pragma once
#include <atomic>
#include <chrono>
#include <mutex>

#include "core/report/report.h"
#include "core/task/record_row.h"
#include "io/jobs/engines.h"
#include "io/run_folder/row_sink.h"

namespace sheaf {

/// What a run counts for its report, by the thread of the steps and the thread of the rows, and what it saves
/// of it in the run folder, so that the report covers every session of a run that was stopped.
class RunCount {
 public:
  /// `about`: what describes the run. `sink` holds what earlier sessions saved.
  RunCount(Report about, RowSink& sink);

  /// What was found wrong with what earlier sessions saved; empty: nothing.
  const std::string& notice() const { return notice_; }

  void start(double open_seconds);
  /// Counts something, on any thread.
  template <class Count>
  void add(const Count& count) {
    const std::lock_guard lock(mutex_);
    count(session_);
  }
  /// A step of one engine, on its own thread.
  void step(size_t engine, const EngineStats& stats, const Engines& engines, bool last = false);
  int64_t engines_left();
  /// After a group was committed; saves the count now and then.
  void committed(const PipelineStats& pipeline);
  /// Saves what was counted up to the last committed group. `ended`: the session ends in order.
  void save(bool ended = false);
  /// Records of the whole run, as others want to know them while it runs (`sheaf status`).
  void expect(int64_t records) { records_ = records; }

  /// Of all sessions, as far as they were counted.
  nlohmann::ordered_json report(const PipelineStats& pipeline);

 private:
  using Clock = std::chrono::steady_clock;

  nlohmann::ordered_json all_sessions(const Report& session) const;
  void save_if_due(bool committed);
  void bring_up_to_date(const PipelineStats& pipeline);

  RowSink& sink_;
  std::string notice_;
  std::optional<nlohmann::ordered_json> earlier_;
  int64_t rows_uncounted_ = 0,
          rejects_uncounted_ = 0;  ///< of sessions that were killed before they saved them
  std::mutex mutex_;               ///< of what follows
  Report session_;
  Report committed_;                ///< the session as of the last committed group
  int64_t rows_ = 0, rejects_ = 0;  ///< in the folder by then
  Clock::time_point start_ = Clock::now();
  std::mutex saving_;  ///< of what follows
  Clock::time_point saved_at_ = Clock::now();
  bool saved_once_ = false;
  std::atomic<int64_t> records_ = 0;         ///< of the whole run; 0: not known
  std::vector<Clock::time_point> asked_at_;  ///< per engine
};

}  // namespace sheaf

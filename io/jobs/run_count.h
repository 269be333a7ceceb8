#pragma once
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/report/report.h"
#include "core/task/record_row.h"
#include "io/run_folder/run_folder.h"

namespace sheaf {

/// What a run counts for its report, by the thread of the steps and the thread of the rows, and what it saves
/// of it in the run folder, so that the report covers every session of a run that was stopped.
class RunCount {
 public:
  /// `about`: what describes the run. `folder` holds what earlier sessions saved.
  RunCount(Report about, RunFolder& folder);

  /// What was found wrong with what earlier sessions saved; empty: nothing.
  const std::string& notice() const { return notice_; }

  void start(double open_seconds);
  /// After every step, and once after the last row.
  void step(const EngineStats& engines, const PipelineStats& pipeline);
  /// Of one of them, on its own thread.
  void step(size_t engine, const EngineStats& stats, const Backend& backend, bool last = false);
  /// An engine failed.
  void lost(size_t engine, const std::string& why);
  int64_t engines_left();
  /// The time that the steps so far were predicted to take, none where that means nothing, and how far off it
  /// may be, as a share.
  void predict(std::optional<double> seconds, double error);
  /// What the store of keys and values did.
  void stored(const KvStoreUse& use);
  void row(const Record& record, const Row& row, const Outcome& outcome);
  void reject(const Reject& reject);
  /// After a group was committed; saves the count now and then.
  void committed(const PipelineStats& pipeline);
  /// Saves what was counted up to the last committed group.
  void save();

  /// Of all sessions, as far as they were counted.
  nlohmann::ordered_json report(const PipelineStats& pipeline);

 private:
  using Clock = std::chrono::steady_clock;

  nlohmann::ordered_json all_sessions(const Report& session) const;
  void bring_up_to_date(const PipelineStats& pipeline);

  RunFolder& folder_;
  std::string notice_;
  std::optional<nlohmann::ordered_json> earlier_;
  int64_t rows_uncounted_ = 0,
          rejects_uncounted_ = 0;  ///< of sessions that were killed before they saved them
  std::mutex mutex_;               ///< of what follows
  Report session_;
  Report committed_;                ///< the session as of the last committed group
  int64_t rows_ = 0, rejects_ = 0;  ///< in the folder by then
  Clock::time_point start_ = Clock::now(), saved_at_{};
  std::vector<Clock::time_point> asked_at_;  ///< per engine
};

}  // namespace sheaf

#pragma once
#include <chrono>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "io/base/descriptor.h"
#include "io/jobs/run_job.h"

namespace sheaf {

/// How far the session of a run is.
struct SessionState {
  RunState session;
  std::optional<int64_t> total;  ///< records of the session, where known
  double seconds = 0;            ///< since decoding began
  bool guessed = false;          ///< the total is an estimate

  double rows_per_second() const;
  std::optional<double> seconds_left() const;
  double usd() const { return session.usd_per_second * seconds; }
};

/// The share of a session's `total` records that is done or rejected.
double share_done(const RunState& state, int64_t total);

/// "12 of 40 records (35 %), 1.9/s, 14 s left, 2 rejects, $0.0021". Before the first record is done, the rate
/// is that of the tokens.
std::string progress_line(const SessionState& state);

/// The log of a run: one line per event, appended with one write each, so that several processes and
/// logrotate's copytruncate lose no line. A log that was moved away gets a new file under its name. What
/// cannot be written is left out: a full disk of logs must not stop the job. Any thread may call it.
class RunLog {
 public:
  /// `json`: a JSON object per line; else text. Refuses a path that cannot be opened.
  RunLog(std::string path, bool json);

  /// `event`: the kind of line. `fields`: what the JSON line holds beside it. `text`: the other form.
  void write(const char* event, const nlohmann::ordered_json& fields, const std::string& text);

 private:
  void reopen_if_moved();

  const std::string path_;
  const bool json_;
  std::mutex mutex_;  ///< of what follows
  std::optional<Descriptor> file_;
};

/// Figures of a run in the text format of Prometheus, replaced in one step every few seconds, for the
/// textfile collector of node_exporter.
class RunMetrics {
 public:
  /// Refuses a path that cannot be written, or whose name the collector would pass over. `inputs`: what the
  /// job reads.
  RunMetrics(const std::string& path, const std::vector<std::string>& inputs);

  /// What is known of the run before it begins: a run that is refused has these labels too.
  void expect(const RunBegin& run) { run_ = run; }
  void begin(const RunBegin& run);
  void update(const SessionState& state);
  void end(int exit_code);

 private:
  void write();

  std::string path_;
  std::mutex mutex_;  ///< of what follows
  RunBegin run_;
  SessionState state_;
  std::optional<int> exit_code_;
  int64_t started_ = 0;  ///< seconds since 1970
};

/// The files that tell others how a run goes.
struct LogSettings {
  std::string log;              ///< path; empty: none
  std::string format = "text";  ///< of the log: text or json
  std::string metrics;          ///< path; empty: none
};

/// Passes what a run says on to `shown`, and writes it to the log and the metrics: the state every ten
/// seconds, and the last one.
class LoggedRun : public RunListener {
 public:
  LoggedRun(const LogSettings& settings, const Job& job, RunListener& shown);

  void note(const std::string& text) override;
  void warn(const std::string& text) override;
  void heading(const std::string& text) override { shown_.heading(text); }
  void begun(const RunBegin& run) override;
  void rejected(const Reject& reject) override;
  void started(std::optional<int64_t> records) override;
  void guess(int64_t records) override;
  void step(const RunState& state) override;
  void ended() override;

  /// How run_job() ended.
  void end(const RunEnd& end);
  void fail(Fault fault, const std::string& reason);

 private:
  using Clock = std::chrono::steady_clock;

  void write(const char* event, const nlohmann::ordered_json& fields, const std::string& text) {
    if (log_) log_->write(event, fields, text);
  }
  void write_state();
  void write_end(int exit_code, nlohmann::ordered_json fields, const std::string& text);

  RunListener& shown_;
  RunBegin known_;  ///< before the run begins
  std::optional<RunLog> log_;
  std::optional<RunMetrics> metrics_;
  SessionState state_;
  Clock::time_point start_, written_at_;
  int64_t rejects_logged_ = 0;
};

/// run_job() with a log.
RunEnd run_logged_job(const Job& asked, const RunSettings& settings, const LogSettings& log,
                      RunListener& shown);

/// The text of RunMetrics. `now`, `started`: seconds since 1970. `exit_code`: nothing while it runs.
std::string metrics_text(const RunBegin& run, const SessionState& state, std::optional<int> exit_code,
                         int64_t started, int64_t now);

}  // namespace sheaf

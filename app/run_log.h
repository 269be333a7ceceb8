#pragma once
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/base/descriptor.h"
#include "io/jobs/run_job.h"

namespace sheaf {

/// How far a run is, as a log and a monitor want to have it.
struct LoggedState {
  RunState session;
  std::optional<int64_t> total;  ///< records of the session, where known
  bool guessed = false;          ///< the total is an estimate
  double seconds = 0;            ///< since decoding began

  double rows_per_second() const;
  std::optional<double> seconds_left() const;
  double usd() const { return session.usd_per_second * seconds; }
};

/// The log of a run: one line per event, appended with one write each, so that several processes and
/// logrotate's copytruncate lose no line. A log that was moved away is opened anew under its name. What
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

  void begin(const RunBegin& run);
  void update(const LoggedState& state);
  void end(int exit_code);

 private:
  void write();

  std::string path_;
  std::mutex mutex_;  ///< of what follows
  RunBegin run_;
  LoggedState state_;
  std::optional<int> exit_code_;
  int64_t started_ = 0;  ///< seconds since 1970
};

/// The text of RunMetrics. `now`, `started`: seconds since 1970. `exit_code`: nothing while it runs.
std::string metrics_text(const RunBegin& run, const LoggedState& state, std::optional<int> exit_code,
                         int64_t started, int64_t now);

}  // namespace sheaf

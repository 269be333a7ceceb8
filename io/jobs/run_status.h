#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sheaf {

/// How far one run is, told by its folder alone: the run may be at work on another machine.
struct RunStatus {
  enum class State : uint8_t {
    running,  ///< it has saved its counts within the last minute and a half
    silent,   ///< it was at work and says nothing any more: killed, hung, or its machine is gone
    stopped,  ///< it ended in order and can be resumed
    finished,
  };

  std::string folder;
  State state = State::silent;
  int64_t rows = 0, rejects = 0;        ///< committed
  std::optional<int64_t> records = {};  ///< of the whole run, rejected ones included, where known
  int64_t shard = -1, shards = 0;       ///< part of how many; 0: the run is not a part
  double rows_per_second = 0;           ///< of all its sessions
  double usd = 0;                       ///< so far
  int64_t updated = 0;                  ///< when it last wrote something, in seconds since 1970
  std::string where = {};               ///< host and process, where it says so: "node7, process 4211"
  std::string trouble = {};             ///< why the folder cannot be read; empty: it can
  bool late = false;                    ///< it ends much later than the others, or not by itself

  int64_t left() const;  ///< records to come, where their number is known
  std::optional<double> seconds_left() const;
};

const char* state_word(RunStatus::State state);

/// The status of one run; refuses a folder without one. `now`: seconds since 1970.
RunStatus run_status(const std::string& folder, int64_t now);

/// Several runs, mostly the parts of one job.
struct StatusTable {
  std::vector<RunStatus> runs;
  std::vector<int64_t> missing;  ///< parts of the job that no folder was found of
  int64_t now = 0;               ///< seconds since 1970

  int64_t rows() const;
  int64_t rejects() const;
  double usd() const;
  /// Rows per second of all runs that are at work.
  double rows_per_second() const;
  /// Records of all parts, those without a folder taken to be as large as the others; nothing where unknown.
  std::optional<double> records() const;
  /// Until the last row at the present rate.
  std::optional<double> seconds_left() const;
};

/// The status of runs. `paths`: folders of runs, or folders that hold such. A merge among parts is left out.
StatusTable read_status(const std::vector<std::string>& paths, int64_t now);

/// A few lines for the terminal: sums, and a line for each run; of many, only for those that are not
/// finished.
std::string status_text(const StatusTable& table, bool all);
nlohmann::ordered_json status_json(const StatusTable& table);

}  // namespace sheaf

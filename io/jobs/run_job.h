#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/engine/backend.h"
#include "core/job/job.h"
#include "core/task/record.h"
#include "io/jobs/earlier_runs.h"
#include "io/run_folder/row_stream.h"

namespace sheaf {

class OpenModel;

/// How far a run is. Counts are those of the session.
struct RunState {
  int64_t records = 0;
  int64_t rejects = 0;
  int64_t tokens = 0;  ///< computed
  double usd_per_second = 0;
};

/// What a session of a run begins with.
struct RunBegin {
  std::string job, output;         ///< the job's file and the run's folder
  std::string shard;               ///< "3/64"; empty: all of the corpus
  std::string backend;             ///< what computes: "CPU, int8, 2 threads"
  int64_t rows = 0, rejects = 0;   ///< in the folder, from earlier sessions
  std::optional<int64_t> records;  ///< to come, where that is known
};

/// Who is told how a run goes. This one keeps it to itself.
class RunListener {
 public:
  virtual ~RunListener() = default;
  /// Something the user should know.
  virtual void note(const std::string& /*text*/) {}
  /// Something that costs money: shown also to those who asked for silence.
  virtual void warn(const std::string& text) { note(text); }
  /// A session of a run is about to decode.
  virtual void begun(const RunBegin& /*run*/) {}
  /// A record was rejected; comes on the thread of the rows.
  virtual void rejected(const Reject& /*reject*/) {}
  /// One of several runs begins.
  virtual void heading(const std::string& /*text*/) {}
  /// Decoding begins; `records` are to come, where that is known.
  virtual void started(std::optional<int64_t> /*records*/) {}
  /// Where the records to come are not known: how many it looks like.
  virtual void guess(int64_t /*records*/) {}
  virtual void step(const RunState& /*state*/) {}
  virtual void ended() {}
};

/// How a job is run, beside what it says itself.
struct RunSettings {
  bool take_finished = false;  ///< with `restart`: a finished run of this very job is not run again
  bool restart = false;  ///< run it again; what the output folder holds is replaced once the new run is whole
  bool keep_previous = false;    ///< with it: what was there stays as OUTPUT.previous
  bool allow_empty = false;      ///< a run without a row is a success
  bool zero_on_rejects = false;  ///< the exit code of a run with rejects is 0, not 1
  std::string shard;             ///< "0/4", or "auto": as the scheduler says; empty: all of the corpus
  int64_t shards = 0;            ///< with "auto": of how many; 0: as the scheduler says
  std::string max_rejects;       ///< "100" or "2.5%"; empty: any number
  double max_hours = 0;          ///< most hours of this session, opening the model included; 0: any
  double max_usd = 0;            ///< most dollars of this session at the job's price; 0: any
  ReuseWish reuse = {};          ///< with `restart` it may name the output folder itself
  std::string published_to;      ///< the URI that the finished run goes to; empty: none
  std::shared_ptr<OpenModel> model = {};  ///< open already, for one job after the other; null: the job's own
  RowStream* stream = nullptr;  ///< where the rows go in place of the output folder; null: into the folder
  /// What is to compute in place of an engine's backend. Tests make one fail.
  std::function<std::unique_ptr<Backend>(size_t engine, std::unique_ptr<Backend> backend)> replace = {};
};

struct RunEnd {
  int exit_code = 0;
  bool was_finished = false;      ///< before this call, which did nothing then
  nlohmann::ordered_json report;  ///< null where it was interrupted
  std::string interrupted;        ///< what to tell the user where it was
};

/// Runs a job as it is `asked` for into its output folder, or resumes it, or into a stream. Stops in order
/// once the job's flag is set.
RunEnd run_job(const Job& asked, const RunSettings& settings, RunListener& listener);

/// Runs a job whose output.path is a URI: in its local folder (output.work), with journal and resume as
/// usual, and then publishes the finished run. run_job() calls it.
RunEnd run_stored_job(const Job& asked, const RunSettings& settings, RunListener& listener);

}  // namespace sheaf

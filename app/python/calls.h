#pragma once
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "io/base/scratch_file.h"
#include "io/base/yaml_reader.h"
#include "io/jobs/run_log.h"

struct ArrowArrayStream;

namespace sheaf {

class OpenModel;

/// A model that is kept open, and the sections of a job that it was opened by.
struct KeptModel {
  YamlPtr sections;  ///< model and engine
  std::shared_ptr<OpenModel> model;
  std::timed_mutex turn;  ///< of the run that uses it
  std::atomic<const std::atomic<bool>*> user =
      nullptr;  ///< stop flag of the run that has the turn; null: none
};

/// What a run leaves for those who read its rows.
class KeptRows {
 public:
  virtual ~KeptRows() = default;
  virtual void export_to(ArrowArrayStream* stream) = 0;
};

/// Notes, rejects and progress of a run, for another thread to look at.
class CallListener : public RunListener {
 public:
  void note(const std::string& text) override;
  void rejected(const Reject& reject) override;
  void started(std::optional<int64_t> records) override;
  void guess(int64_t records) override;
  void step(const RunState& state) override;

  std::string progress() const;  ///< a JSON object; empty before the first step
  nlohmann::ordered_json notes() const;
  nlohmann::ordered_json rejects() const;

 private:
  using Clock = std::chrono::steady_clock;

  mutable std::mutex mutex_;  ///< of what follows
  nlohmann::ordered_json notes_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json rejects_ = nlohmann::ordered_json::array();
  SessionState state_;
  Clock::time_point begun_;
  bool stepped_ = false;
};

/// One piece of work on a thread of its own, so that the caller can look at signals meanwhile.
///
///   kind      request                                                     result
///   open      job                                                         model, notes
///   run       job, set, output, restart, allow_empty, limit, reuse        rows, report, rejects, ...
///   plan      job, set, limit, answer_tokens                              as `sheaf plan --json`
///   estimate  job, set, hardware, records, devices, model                 as `sheaf estimate --json`
///   score     predictions, gold, metric, job, ...                         as `sheaf score --json`
///   inspect   path, model                                                 as `sheaf inspect --json`
///
/// `job` is {"path": a file} or {"dict": its sections}.
class Call {
 public:
  /// `model`: of a run; null: the job's own is opened. `table`: the records, taken over; null: none.
  Call(std::string kind, std::string request, std::shared_ptr<KeptModel> model, ArrowArrayStream* table);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Whether it ended within the time.
  bool wait(int milliseconds);
  /// Asks the work to stop in order.
  void stop() { stop_ = true; }
  std::string progress() const { return listener_.progress(); }
  /// Once it ended: {"result": ...}, {"mistakes": [{message, place, fix}]} or {"failure", "exit_code"}.
  const std::string& result() const { return result_; }
  /// The rows of a run, as a stream that the caller frees. Throws where there are none.
  ArrowArrayStream* rows();
  /// The model that the call opened, once; null: none.
  std::shared_ptr<KeptModel> take_model() { return std::exchange(opened_, nullptr); }

 private:
  void work(const std::string& request);
  nlohmann::ordered_json answer(const nlohmann::json& request);
  nlohmann::ordered_json open(const nlohmann::json& request);
  nlohmann::ordered_json run(const nlohmann::json& request);
  nlohmann::ordered_json plan(const nlohmann::json& request);
  Job read_job(const nlohmann::json& request, bool folder);

  const std::string kind_;
  std::shared_ptr<KeptModel> model_;   ///< until the work is done
  std::shared_ptr<KeptModel> opened_;  ///< until somebody takes it
  ArrowArrayStream* table_;
  std::atomic<bool> stop_ = false;
  CallListener listener_;
  std::unique_ptr<ScratchFile> copy_;  ///< of the table
  std::unique_ptr<KeptRows> rows_;
  std::string result_;

  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;  ///< guarded by mutex_
  std::thread thread_;
};

/// What went wrong, as a caller in another language wants it: {"mistakes"} or {"failure", "exit_code"}. To be
/// called where an exception was caught.
nlohmann::ordered_json describe_failure();  // failures.cc

/// Where a message says that a mistake is ("job.yaml:7: input.document"), and what to do about it; empty
/// where it does not say.
struct MistakeParts {
  std::string place, fix;
};
MistakeParts mistake_parts(const std::string& message);  // failures.cc

}  // namespace sheaf

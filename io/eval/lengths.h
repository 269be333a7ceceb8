#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/estimate/device_model.h"
#include "io/base/file_layer.h"
#include "io/files/job_file.h"

namespace sheaf {

class BenchBackend;

/// A dataset of made-up records, all of the same lengths: how long they take does not depend on what they
/// say.
struct EvalLengths {
  int32_t instruction_tokens = 1;
  int32_t documents = 1;
  int32_t documents_per_record = 1;  ///< of a question: read one by one, or as one text
  int32_t document_tokens = 1;
  int32_t questions = 1;  ///< of each document, or record
  int32_t question_tokens = 1;
  int32_t answer_tokens = 1;
  bool object = false;        ///< where a method asks for all at once: one answer with questions and answers
  int32_t object_tokens = 0;  ///< of that answer; 0: as many as questions and answers have together
  int32_t entries = 0;        ///< of a list of objects that each document has; 0: it has none
  int32_t anchor_tokens = 1;  ///< of an entry
  int32_t entry_questions = 0;   ///< about each entry, in the second round
  std::string count = "tokens";  ///< of answers; or questions, documents: what throughput counts
  bool decoding_only = false;    ///< the time that answers of one token take is taken off
  int32_t runs = 3;              ///< the first of several warms up, the median of the others counts
  int32_t samples = 1;           ///< answers to each question
  double accepted = 0;           ///< the share of a draft's tokens that count as right
  bool attention = true;         ///< false: a token sees one key
  bool share_documents = true;   ///< false: each answer has a copy of its document

  int64_t asked() const;     ///< questions of all records, in both rounds
  int64_t answered() const;  ///< tokens of all their answers
  int64_t counted() const;   ///< what throughput counts, of all records
};

/// Refuses unknown keys and lengths that are none.
EvalLengths read_lengths(const YamlPtr& node);

/// Refuses changes of keys that say nothing where only lengths are timed.
void check_lengths_changes(const std::string& place, const std::vector<std::string>& keys);

/// What a method and an engine are for records of lengths: a job without corpus and task of its own.
Job lengths_job(const std::string& file, const std::vector<JobChange>& changes);

/// Refuses a model that is neither a shape's name nor a config.json nor a model's files.
void check_lengths_model(const std::string& model, const std::string& from);

/// Refuses a draft without the share of its tokens that count as right, and such a share without a draft.
void check_accepted(const std::string& place, const Job& job, double accepted);

/// Refuses a method that has no second round about the entries of lists.
void check_entries(const std::string& place, const Job& job);

/// An equal measurement, where the job's output folder holds it; null where it holds none that can be used.
/// Another one is refused.
nlohmann::ordered_json measured_before(const Job& job, const EvalLengths& lengths);

/// What timing a cell is expected to take, before anything is computed.
struct LengthsForecast {
  /// One pass over the records: what the decode loop would do, nothing computed.
  struct Pass {
    int64_t steps = 0;
    double seconds = 0;  ///< 0: the device has no profile
  };
  Pass whole, first;    ///< answers of full length; of one token, where that is timed too
  int32_t runs = 0;     ///< passes of each
  double error = 0;     ///< of the seconds, as a share
  double gb = 0;        ///< weights, keys and values; 0: not known
  std::string trouble;  ///< why it cannot be measured here; empty: it can

  double seconds() const { return runs * (whole.seconds + first.seconds); }  ///< 0: not known
};

/// Told how far a measurement is, from 0 to 1.
using OnTimed = std::function<void(double share)>;

/// Times records of given lengths with random weights of a shape, or a model's own.
class LengthsBench {
 public:
  explicit LengthsBench(FileLayer& files);
  ~LengthsBench();

  /// What was measured, also in the job's output folder; `not_measured` says why not. Null
  /// where it was interrupted. What the folder holds
  /// already is not measured again, unless `restart`.
  nlohmann::ordered_json time(const Job& job, const EvalLengths& lengths, bool restart,
                              const LengthsForecast& expected = {}, const OnTimed& progress = {});
  /// Goes through the decode loop without computing.
  LengthsForecast forecast(const Job& job, const EvalLengths& asked);

 private:
  struct Timed {
    std::string trouble;   ///< why it could not be done
    double seconds = 0;    ///< 0: it could not be done, or was interrupted
    double predicted = 0;  ///< seconds; 0: the device is not known
    double memory_gb = 0;  ///< of the device at the peak; 0: not known
    int64_t steps = 0;
    int64_t proposed = 0, accepted = 0;  ///< tokens of a draft
  };
  void open(const Job& job);
  Timed time_answers(const Job& job, const EvalLengths& asked, int32_t answer_tokens,
                     const std::function<void(int32_t run, int64_t steps, double predicted)>& on_step);
  LengthsForecast::Pass simulate(const Job& job, const EvalLengths& lengths, int32_t answer_tokens,
                                 const ModelConfig& config, LengthsForecast& forecast);
  const BenchBackend& probe(const Job& job);

  FileLayer& files_;
  std::string opened_;  ///< the model and device of `backend_`
  std::unique_ptr<BenchBackend> backend_;
  std::unique_ptr<BenchBackend> draft_;  ///< none where the method has none
  std::optional<DeviceModel> device_;    ///< as its profile has it
  int64_t kv_bytes_ = 0;                 ///< bytes for keys and values, as found when it was opened
  int32_t most_pages_ = 0;               ///< of the largest pool since
  std::string probed_;                   ///< the device of `probe_`
  std::unique_ptr<BenchBackend> probe_;  ///< a tiny model, to ask the device about
};

}  // namespace sheaf

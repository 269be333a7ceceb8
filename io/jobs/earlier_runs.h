#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/job/job.h"
#include "core/task/task.h"
#include "io/answers/reuse.h"

namespace sheaf {

/// Which earlier runs a job may take answers from, and how much it wants of them (docs/reuse.md).
struct ReuseWish {
  /// Folders or URIs of runs, wildcards of such, or latest:PATTERN for the newest finished run that matches;
  /// empty: as output.reuse says.
  std::vector<std::string> runs = {};
  bool if_exists = false;  ///< no run there is a notice, not a mistake
  std::string required;    ///< least share of the answers that must be known: "0.9" or "90%"; empty: any

  std::vector<std::string> runs_of(const Job& job) const;
};

/// "0.9" or "90%" as a share; refuses anything else, naming the `option`.
double parse_share(const std::string& text, const char* option);

/// A run that answers are to be taken from.
struct EarlierRun {
  std::string name;    ///< as messages call it: its folder or URI
  std::string asked;   ///< what the user wrote
  bool found = false;  ///< it exists; with latest: or wildcards there may be several for one `asked`, or none
};

/// The runs that `asked` names, in the order in which they are looked through. `own`: folder and URI of the
/// run that asks, which latest: and wildcards never name. `job`: its file's name stands for {job}.
std::vector<EarlierRun> find_earlier_runs(const std::vector<std::string>& asked, const Job& job,
                                          const std::vector<std::string>& own);

/// The answers of earlier runs.
class EarlierRuns {
 public:
  /// `settings`: what answers depend on beside records and questions (io/files/job_fingerprint.h). Refuses a
  /// run that does not exist, unless the wish says otherwise.
  EarlierRuns(const ReuseWish& wish, const Job& job, const std::vector<std::string>& own,
              const nlohmann::ordered_json& settings);

  bool asked() const { return asked_; }          ///< the job wants to reuse something
  bool is_first() const { return is_first_; }    ///< and none of the runs exists yet
  bool usable() const { return !all_.empty(); }  ///< some answers may be known
  const std::vector<EarlierAnswers>& answers() const { return all_; }
  /// The runs whose answers are looked through: "out/monday, out/sunday".
  std::string names() const;
  /// Why answers of runs cannot be used: they are decoded again, which costs money.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// What a user may want to know: which run latest: stands for.
  const std::vector<std::string>& notices() const { return notices_; }

  bool has(const AnswerKey& key) const;

 private:
  void open(const EarlierRun& run, const nlohmann::ordered_json& settings);

  bool asked_ = false, is_first_ = false;
  std::vector<EarlierAnswers> all_;
  std::vector<std::string> names_, warnings_, notices_;
};

/// How much of what a job asks for is known from earlier runs.
struct KnownShare {
  int64_t records = 0;  ///< records that give answers
  int64_t answers = 0;  ///< of these records
  int64_t known = 0;    ///< answers that earlier runs have

  double share() const { return answers > 0 ? static_cast<double>(known) / static_cast<double>(answers) : 1; }
};

/// Whether the method's answers can be taken one by one, or only all of a record together. Refuses a method
/// whose answers depend on other records.
bool answers_together(const Job::Method& method);

/// Reads the corpus once and looks every answer up; nothing is decoded. `see` gets every record that gives
/// answers, with which of them are known (empty: none). Nothing where it was interrupted.
std::optional<KnownShare> count_known(Corpus& corpus, Task& task, const Job& job,
                                      const nlohmann::ordered_json& settings, const EarlierRuns& earlier,
                                      const std::function<void(int64_t position, const Record& record,
                                                               const std::vector<bool>& known)>& see = {});

/// Refuses where less than the required share is known.
void check_required_reuse(const std::string& required, const KnownShare& known, const EarlierRuns& earlier);

/// The answers of earlier runs for a plan, which decodes nothing: what the plan itself comes by is known from
/// then on.
class PlannedReuse final : public AnswerStore {
 public:
  /// `task`: makes the prompts as a run does; a plan leaves out what only decoding needs.
  PlannedReuse(const EarlierRuns& earlier, std::unique_ptr<Task> task, const Job& job,
               const nlohmann::ordered_json& settings);

  std::vector<AnswerKey> keys(const Record& record, const RecordParts& parts, bool together) override;
  bool knows(const AnswerKey& key) override;
  std::optional<Answer> find(const AnswerKey& key) override {
    for (const EarlierAnswers& run : earlier_.answers())
      if (std::optional<Answer> answer = run.find(key)) return answer;
    return Answer();
  }
  void add(const AnswerKey& key, const Answer& answer) override;

 private:
  const EarlierRuns& earlier_;
  std::unique_ptr<Task> task_;
  AnswerKeys keys_;
  std::mutex mutex_;  ///< of what follows
  std::unordered_set<AnswerKey, AnswerKeyHash> planned_;
};

}  // namespace sheaf

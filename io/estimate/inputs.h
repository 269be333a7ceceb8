#pragma once
#include <mutex>

#include "core/estimate/estimate.h"
#include "core/estimate/hardware.h"
#include "core/job/job.h"
#include "core/task/record.h"
#include "core/task/task.h"
#include "core/tokenizer/tokenizer.h"
#include "io/files/estimate_section.h"
#include "io/files/workload.h"
#include "io/jobs/earlier_runs.h"
#include "io/jobs/trusted_run.h"

namespace sheaf {

/// What the user asks `sheaf estimate` about.
struct EstimateAsked : EstimateWishes {
  std::string job;  ///< a job file; empty: statistics or a workload say it all
  YamlPtr root;     ///< what the job file would hold; null: it is read
  std::vector<std::string> overrides;
  std::string method;               ///< instead of the job's
  std::string workload;             ///< a file for `sheaf bench`
  std::string dtype;                ///< instead of the job's model.dtype
  bool packed = false;              ///< weights packed, instead of the job's model.weights
  std::string hardware_file;        ///< the list of devices; empty: the installed one
  std::vector<std::string> sweeps;  ///< KEY=VALUE,VALUE each
  std::optional<int32_t> documents, prompt_tokens, tokens_per_step;  ///< instead of the job's
  ReuseWish reuse;  ///< runs whose answers are not decoded again; none: output.reuse is not looked at
};

/// Earlier runs have every answer of a job: there is nothing to estimate.
struct NothingToDecode {
  KnownShare known;
  std::string from;  ///< the runs
};

/// Everything an estimate is made from, opened: no weights are read.
class EstimateInputs {
 public:
  explicit EstimateInputs(const EstimateAsked& asked);
  EstimateInputs(const EstimateInputs&) = delete;
  EstimateInputs& operator=(const EstimateInputs&) = delete;

  const Job& job() const { return job_; }  ///< without a job file: how `sheaf bench` packs a workload
  const std::string& model_name() const { return model_name_; }
  const ModelConfig& config() const { return model_.config; }
  const DescribedModel& model() const { return model_; }
  /// Where tokens and records come from, a line each.
  const std::vector<std::string>& notes() const { return notes_; }
  const SampledRecords& records() const { return sampled_; }
  /// What earlier runs know, where the user names some.
  const std::optional<KnownShare>& reused() const { return reused_; }

 private:
  /// The records as one way to word prompts has them, and what they need to live.
  struct WordedRows {
    Job job;
    std::unique_ptr<Task> task;
    std::vector<ReadyRecord> records;
  };

  void open_tokenizer(const EstimateAsked& asked);
  void read_corpus(const EstimateAsked& asked);
  bool read_changed(const EstimateAsked& asked);
  void make_up(const EstimateAsked& asked);
  void make_up_alone(const RecordStatistics& statistics);
  void make_up_for_job(RecordStatistics statistics, const EstimateAsked& asked);
  void use_workload(const EstimateAsked& asked);
  void assume_answers(const EstimateAsked& asked);
  bool only_options() const;
  int32_t together_tokens(int32_t value_tokens, AnswerForm answers) const;
  const WordedRows& worded(const Job::Method& method) const;

  Job job_;
  std::string model_name_;
  DescribedModel model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  ChatTemplate chat_;
  bool examples_ = false;  ///< the instruction ends with those of input.shots, worded as a method words them
  Schema schema_;
  Examples turns_;               ///< of task.examples
  std::vector<Record> records_;  ///< a corpus: its sample
  std::vector<std::vector<bool>>
      known_;  ///< answers of each sampled record that earlier runs have; empty: none
  std::optional<KnownShare> reused_;
  std::optional<TrustedRun> trusted_;  ///< of task.trust
  PackingRules packing_;
  /// No task: there is no job.
  std::function<std::vector<ReadyRecord>(const Job::Method&, Task*)> make_records_;
  mutable std::mutex wording_;
  mutable std::map<std::pair<Wording, Stacking>, std::unique_ptr<WordedRows>> worded_;  ///< with stacking
  std::vector<std::string> notes_;
  SampledRecords sampled_;
};

/// What is to be estimated, completed by the job's own section and checked as a run would check it.
struct AskedEstimate {
  explicit AskedEstimate(const EstimateAsked& given);
  AskedEstimate(const AskedEstimate&) = delete;
  AskedEstimate& operator=(const AskedEstimate&) = delete;

  const EstimateAsked asked;
  const double within;  ///< seconds that it may take; 0: any
  const EstimateInputs inputs;
  const HardwareList list;
  EstimateCase base;
  std::vector<SweepAxis> axes;  ///< what is compared; empty: nothing, `base` is estimated

 private:
  const SweepAxis* find_axis(std::string_view key) const;
  void check_methods() const;
  void check_dtype(const SweepAxis& hardware) const;
};

DescribedModel describe_for_estimate(const std::string& model);

/// The head of a made-up record: a bin and its name.
using RecordHead = std::pair<std::string, std::shared_ptr<const BinParts>>;

/// Records with the given lengths, drawn as bench/make_workloads.py draws them, under the heads in turn;
/// where a head has questions those are asked. No answer is longer than `most_answer`. `apart`: a record's
/// documents are kept apart, as chains.
std::vector<ReadyRecord> make_up_records(const RecordStatistics& statistics, int64_t records,
                                         const std::vector<RecordHead>& heads, int32_t most_answer,
                                         bool apart = false);

/// As many tokens as asked for, of no meaning.
Tokens make_up_tokens(double count);

/// Used where there is no tokenizer: a fixed number of tokens per byte, equal text in equal tokens. Good for
/// counting only.
class ByteTokenizer final : public Tokenizer {
 public:
  ByteTokenizer(double tokens_per_byte, int32_t vocab) : tokens_per_byte_(tokens_per_byte), vocab_(vocab) {}

  void encode(std::string_view text, bool parse_special, Tokens& out) const override;
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override;
  int32_t vocab_size() const override { return vocab_; }
  std::optional<TokenId> find(std::string_view) const override { return std::nullopt; }
  bool is_special(TokenId) const override { return false; }
  std::string describe() const override;

 private:
  double tokens_per_byte_;
  int32_t vocab_;
};

}  // namespace sheaf

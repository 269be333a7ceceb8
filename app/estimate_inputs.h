#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/estimate/estimate.h"
#include "core/job.h"
#include "core/task/item.h"
#include "core/task/schema.h"
#include "core/tokenizer/tokenizer.h"
#include "io/workload.h"

namespace sheaf {

/// Mean lengths in tokens of rows that are made up instead of read.
struct RowStatistics {
  double instruction = 0;
  double document = 0;  ///< 0: there are no statistics
  double questions = 1;
  double question = 12;
  double answer = 8;
};

/// What the user asks `sheaf estimate` about.
struct EstimateAsked {
  std::string job;  ///< a job file; empty: statistics or a workload say it all
  std::vector<std::string> overrides;
  std::string model;     ///< instead of the job's: a shape by name, a config.json, a folder or a GGUF file
  std::string method;    ///< instead of the job's
  std::string workload;  ///< a file for `sheaf bench`
  RowStatistics statistics;
  int64_t rows = 0;          ///< of the whole corpus; 0: counted
  int64_t sample = 512;      ///< rows that are looked at
  double answer_tokens = 0;  ///< 0: 8, or as the workload says
  double tokens_per_byte = 0.25;
};

/// Everything an estimate is made from, opened: no weights are read.
class EstimateInputs {
 public:
  explicit EstimateInputs(const EstimateAsked& asked);
  EstimateInputs(const EstimateInputs&) = delete;
  EstimateInputs& operator=(const EstimateInputs&) = delete;

  const Job& job() const { return job_; }  ///< without a job file: how `sheaf bench` packs a workload
  const std::string& model_name() const { return model_name_; }
  const ModelConfig& config() const { return config_; }
  /// Where tokens and rows come from, a line each.
  const std::vector<std::string>& notes() const { return notes_; }
  const SampledRows& rows() const { return rows_; }

 private:
  void open_job(const EstimateAsked& asked);
  void open_tokenizer(const std::string& path, double tokens_per_byte);
  void read_corpus(const EstimateAsked& asked);
  int32_t object_tokens(int32_t value_tokens) const;
  void use_workload(const EstimateAsked& asked);
  std::vector<Stack> plan_corpus(const EstimateCase& asked, const MemoryPlan& memory, int64_t rows) const;
  std::vector<Stack> pack_workload(const EstimateCase& asked, const MemoryPlan& memory, int64_t rows) const;

  Job job_;
  std::string model_name_;
  ModelConfig config_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::string chat_name_;
  Schema schema_;
  std::vector<Item> items_;  ///< the sample
  Workload workload_;        ///< or this
  std::vector<std::string> notes_;
  SampledRows rows_;
};

/// A model's description by the name of a shape, from a config.json or a folder with one, or from a GGUF
/// file.
ModelConfig read_model_config(const std::string& path);

/// A workload with the given lengths, drawn as bench/make_workloads.py draws them.
Workload make_up_workload(const RowStatistics& statistics, int64_t rows);

}  // namespace sheaf

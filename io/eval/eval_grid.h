#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/job/job.h"
#include "core/task/record.h"
#include "io/datasets/gold.h"
#include "io/eval/eval_file.h"

namespace sheaf {

/// One run of an evaluation.
struct EvalCell {
  size_t model = 0, dataset = 0, method = 0;  ///< of the evaluation's lists
  Job job;                                    ///< its output path is OUT/model/dataset/method
  std::optional<EvalLengths> lengths;         ///< rows of these are timed, nothing is answered
};

/// Options of the command line that hold for every job.
struct GridOptions {
  std::vector<std::string> overrides;  ///< --set
  std::string device;
  int64_t limit = 0;
  bool files = true;  ///< models and data must be there
};

/// The jobs of all runs, model by model, dataset by dataset. An error in one names the line of the
/// evaluation, or of the job file, that it comes from.
std::vector<EvalCell> read_grid(const Eval& eval, const GridOptions& options);

/// Finds before the first run what would stop a later one: a model that cannot be read, and (without
/// `restart`) a folder that holds the run of another job.
void check_runs(const std::vector<EvalCell>& cells, bool restart);

/// Whether the job's folder holds a run over rows that are no longer those of its corpus.
bool holds_other_corpus(const Job& job);

/// A question, or a document to extract from, as a run is asked it.
struct AskedItem {
  std::string id;  ///< as predictions and gold answers name it
  nlohmann::json row_id;
  Place place;
  std::string category;  ///< extract
  std::string context, question;
};

/// Calls `take` for every question (extract: document) of a job's corpus until it says false.
void for_each_asked(const Job& job, const std::function<bool(const AskedItem&)>& take);

/// What is right in a dataset of the evaluation, of what its jobs are asked.
std::vector<GoldAnswer> read_asked_gold(const Eval::Dataset& dataset, const Job& job);

}  // namespace sheaf

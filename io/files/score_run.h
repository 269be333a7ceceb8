#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/metrics/score_report.h"
#include "io/files/metric_items.h"

namespace sheaf {

/// What `sheaf score` compares.
struct ScoreSettings {
  std::string metric;
  std::string gold, gold_format = "auto";            ///< the right answers, or
  std::string job;                                   ///< the job whose corpus has them in columns
  std::vector<std::string> gold_columns, overrides;  ///< of the job
  std::string predictions, against;                  ///< runs; `against` may be empty
  std::string schema;  ///< attributes only: the types of values; empty: those of `job`, or all are texts
  std::string locale;  ///< of the numbers and dates of gold, as input.locale has it; of `job` if one is given
  std::string judgements;  ///< llm-f1 only, in place of gold and predictions
  JoinOptions join;
  ScoreOptions options;
};

struct ScoredRun {
  ScoreReport report;
  std::vector<MetricItem> items;

  /// The scores of each item as JSON lines.
  std::string item_lines() const;
};

/// Scores a run, or refuses what is missing, does not fit or cannot be read. `note` is told of items that are
/// missing, unknown or left out.
ScoredRun score_run(const ScoreSettings& settings, const std::function<void(const std::string&)>& note);

/// The right answers that stand in columns of a job's own corpus, JSONL or Parquet; an empty or null cell
/// says that there is none. `given`: extract: ATTRIBUTE=COLUMN, the name of an attribute that is a column
/// too, or a column of objects {attribute: value}; none: every column that is named like an attribute. ask
/// with input.question: one column of a text or a list of accepted ones.
std::vector<GoldAnswer> read_job_gold(Job job, const std::vector<std::string>& given);  // job_gold.cc

}  // namespace sheaf

#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/eval/differences.h"
#include "core/eval/eval_table.h"
#include "io/base/file_layer.h"
#include "io/eval/eval_grid.h"
#include "io/files/metric_items.h"

namespace sheaf {

/// The gold answers of each dataset of an evaluation, read once.
class GoldAnswers {
 public:
  /// Refuses datasets whose gold answers cannot be read or do not fit their metric.
  GoldAnswers(const Eval& eval, const std::vector<EvalCell>& cells);
  const std::vector<GoldAnswer>& of(size_t dataset) const { return by_dataset_.at(dataset); }

 private:
  std::map<size_t, std::vector<GoldAnswer>> by_dataset_;
};

/// What a finished run answered, and what that is worth.
struct ScoredCell {
  Predictions predictions;
  MetricItems joined;  ///< empty where the dataset has no metric
  std::optional<Scores> scores;
};

/// Nothing where the run has no row at all.
std::optional<ScoredCell> score_cell(const Eval::Dataset& dataset, const EvalCell& cell,
                                     const GoldAnswers& gold);

/// The row of a measurement of lengths.
EvalRow timed_row(const Eval& eval, const EvalCell& cell, const nlohmann::ordered_json& report);

/// The row of a run. `baseline` is null for the baseline itself and where there is none.
EvalRow eval_row(const Eval& eval, const EvalCell& cell, const nlohmann::ordered_json& report,
                 const std::optional<ScoredCell>& run, const ScoredCell* baseline);

/// What was asked, by the id of the question or document.
using AskedItems = std::unordered_map<std::string, AskedItem>;
AskedItems read_asked(const Job& job);

/// Writes samples.jsonl into the folder of a run: what was asked, what is right, what was answered, and the
/// scores, a line each.
void write_samples(FileLayer& files, const EvalCell& cell, const ScoredCell& run, const AskedItems& asked);

/// Where two runs of one model on one dataset differ; `most` of them with their texts.
DifferencePair find_differences(const Eval& eval, const EvalCell& first, const ScoredCell& first_run,
                                const EvalCell& second, const ScoredCell& second_run, const AskedItems& asked,
                                size_t most);

}  // namespace sheaf

#include "io/eval/scores.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/report/report.h"
#include "io/base/file_layer.h"
#include "io/run_folder/report_file.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

size_t value_index(const Metric& metric, const std::string& name) {
  const auto found = std::find_if(metric.values.begin(), metric.values.end(),
                                  [&](const Metric::ValueName& value) { return value.name == name; });
  return static_cast<size_t>(found - metric.values.begin());
}

void check_kind(const Eval::Dataset& dataset, const std::vector<GoldAnswer>& gold) {
  if (gold.empty())
    refuse("{}: dataset {}: no record has a gold answer; leave out metric", dataset.place, dataset.name);
  try {
    check_gold(find_metric(dataset.metric), gold);
  } catch (const Error& error) {
    refuse("{}: dataset {}: {}", dataset.place, dataset.name, error.what());
  }
}

double at(const ordered_json& report, const char* pointer) {
  return report.at(ordered_json::json_pointer(pointer)).get<double>();
}

}  // namespace

GoldAnswers::GoldAnswers(const Eval& eval, const std::vector<EvalCell>& cells) {
  for (const EvalCell& cell : cells) {
    const Eval::Dataset& dataset = eval.datasets[cell.dataset];
    if (dataset.metric.empty() || by_dataset_.contains(cell.dataset)) continue;
    std::vector<GoldAnswer> gold = read_asked_gold(dataset, cell.job);
    check_kind(dataset, gold);
    by_dataset_[cell.dataset] = std::move(gold);
  }
}

std::optional<ScoredRun> score_run(const Eval::Dataset& dataset, const EvalCell& cell,
                                   const GoldAnswers& gold) {
  ScoredRun run;
  try {
    run.predictions = read_predictions(cell.job.output.path);
  } catch (const Error&) {
    // A run of nothing but rejects is finished and has no rows.
    const std::string path = cell.job.output.path + "/report.json";
    if (file_size(path) && !has_rows(read_report_file(path))) return std::nullopt;
    throw;
  }
  if (dataset.metric.empty()) return run;
  const Metric& metric = find_metric(dataset.metric);
  run.joined = join_gold(metric, gold.of(cell.dataset), run.predictions,
                         {.no_answer = dataset.no_answer, .unmentioned_absent = dataset.unmentioned_absent});
  run.scores = score_items(metric, run.joined.items);
  return run;
}

namespace {

/// Whose row it is, and what a paper says of it.
EvalRow named_row(const Eval& eval, const EvalCell& cell) {
  EvalRow row;
  row.model = eval.models[cell.model].name;
  row.dataset = eval.datasets[cell.dataset].name;
  row.method = eval.methods[cell.method].label;
  row.usd_per_hour = cell.job.cost.usd_per_hour * cell.job.cost.devices;
  for (const Eval::PaperRow& paper : eval.paper_rows)
    if (paper.model == row.model && paper.dataset == row.dataset && paper.method == row.method) {
      row.paper = paper.figures;
      row.paper_digits = paper.digits;
    }
  return row;
}

}  // namespace

EvalRow timed_row(const Eval& eval, const EvalCell& cell, const ordered_json& report) {
  EvalRow row = named_row(eval, cell);
  row.unit = cell.lengths->count;
  row.count = cell.lengths->counted();
  if (!report.contains("seconds")) return row;
  row.own.seconds = report.at("seconds").get<double>();
  row.own.throughput = static_cast<double>(row.count) / *row.own.seconds;
  if (report.contains("predicted_seconds"))
    row.predicted = static_cast<double>(row.count) / report.at("predicted_seconds").get<double>();
  if (report.contains("memory_gb")) row.own.memory_gb = report.at("memory_gb").get<double>();
  return row;
}

EvalRow eval_row(const Eval& eval, const EvalCell& cell, const ordered_json& report,
                 const std::optional<ScoredRun>& run, const ScoredRun* baseline) {
  const Eval::Dataset& dataset = eval.datasets[cell.dataset];
  EvalRow row = named_row(eval, cell);
  const bool questions = cell.job.task.kind == TaskKind::ask;
  row.unit = questions ? "questions" : "rows";
  const double count = at(report, questions ? "/questions/asked" : "/rows");
  const double seconds = at(report, "/seconds/total") - at(report, "/seconds/open");
  row.count = static_cast<int64_t>(count);
  // Rows of a session that was killed before it counted them are rows all the same.
  if (run && report.at("rows_uncounted") > 0) row.count = static_cast<int64_t>(run->predictions.ids.size());
  row.rejects = report.at("rejects").get<int64_t>();
  row.own.seconds = seconds;
  if (seconds > 0 && count > 0) row.own.throughput = count / seconds;
  if (!dataset.metric.empty()) {
    row.metric = dataset.metric;
    row.value = dataset.value;
  }
  if (!run) return row;
  row.missing = static_cast<int64_t>(run->joined.missing.size());
  if (run->scores) {
    const Metric& metric = *run->scores->metric;
    const size_t value = value_index(metric, dataset.value);
    row.best = metric.best;
    if (!std::isnan(run->scores->values[value])) row.own.quality = run->scores->values[value];
    row.interval = run->scores->intervals[value];
    if (baseline != nullptr && baseline->scores)
      if (const auto compared = compare_scores(*baseline->scores, *run->scores).values[value])
        row.p_value = compared->p_value;
  }
  if (baseline != nullptr) {
    const MetricItems both = join_runs(baseline->predictions, run->predictions);
    row.own.exact_match_percent = 100 * score_items(find_metric("agreement"), both.items, {0, 0}).values[0];
  }
  return row;
}

}  // namespace sheaf

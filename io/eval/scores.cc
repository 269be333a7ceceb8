#include "io/eval/scores.h"

#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/report/report.h"
#include "io/files/job_file.h"
#include "io/run_folder/manifest.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

size_t value_index(const Metric& metric, const std::string& name) {
  const auto found = std::ranges::find(metric.values, name, &Metric::ValueName::name);
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

constexpr size_t kExcerpt = 400;

std::vector<std::string> reference_texts(const MetricItem& item) {
  std::vector<std::string> texts;
  for (const auto& spans : item.references) texts.push_back(fmt::format("{}", fmt::join(spans, ", ")));
  return texts;
}

std::string answer_text(const std::optional<std::vector<std::string>>& prediction) {
  if (!prediction) return "(no prediction)";
  return prediction->empty() ? "(null)" : fmt::format("{}", fmt::join(*prediction, " | "));
}

/// The id of what was asked: items of an extract job are attributes of a document.
const std::string& asked_id(const MetricItem& item) {
  return item.attribute.empty() ? item.id : item.unit;
}

/// The items of a run by id, as they were scored; as they were answered where there is no metric.
class RunItems {
 public:
  explicit RunItems(const ScoredCell& run) : run_(run) {
    for (size_t i = 0; i < run.joined.items.size(); ++i) by_id_[run.joined.items[i].id] = i;
  }

  const MetricItem* find(const std::string& id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : &run_.joined.items[found->second];
  }

  std::vector<std::pair<std::string, double>> scores(const std::string& id) const {
    std::vector<std::pair<std::string, double>> named;
    const auto found = by_id_.find(id);
    if (found == by_id_.end() || !run_.scores) return named;
    const auto& names = run_.scores->metric->scores;
    for (size_t s = 0; s < names.size(); ++s)
      named.emplace_back(names[s].name, run_.scores->items[found->second * names.size() + s]);
    return named;
  }

 private:
  const ScoredCell& run_;
  std::unordered_map<std::string, size_t> by_id_;
};

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

std::optional<ScoredCell> score_cell(const Eval::Dataset& dataset, const EvalCell& cell,
                                     const GoldAnswers& gold) {
  ScoredCell run;
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
  JoinOptions options{.no_answer = dataset.no_answer, .unmentioned_absent = dataset.unmentioned_absent};
  if (cell.job.task.kind == TaskKind::extract)
    options.schema = std::make_shared<Schema>(read_schema(cell.job));
  run.joined = join_gold(metric, gold.of(cell.dataset), run.predictions, options);
  run.scores = score_items(metric, run.joined.items);
  return run;
}

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
                 const std::optional<ScoredCell>& run, const ScoredCell* baseline) {
  const Eval::Dataset& dataset = eval.datasets[cell.dataset];
  EvalRow row = named_row(eval, cell);
  const bool questions = cell.job.task.kind == TaskKind::ask;
  row.unit = questions ? "questions" : "rows";
  const double count = questions ? at(report, "/questions/asked") : static_cast<double>(counted_rows(report));
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
  row.unknown = static_cast<int64_t>(run->joined.unknown.size());
  row.unreadable = run->joined.unreadable.notice(dataset.name, "compared as text");
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

AskedItems read_asked(const Job& job) {
  AskedItems items;
  for_each_asked(job, [&](const AskedItem& item) { return items.emplace(item.id, item), true; });
  return items;
}

void write_samples(FileLayer& files, const EvalCell& cell, const ScoredCell& run, const AskedItems& asked) {
  const RunItems items(run);
  // Where there is no metric, what was answered is all there is.
  const MetricItems own = run.scores ? MetricItems{} : join_runs(run.predictions, run.predictions);
  std::string lines;
  for (const MetricItem& item : run.scores ? run.joined.items : own.items) {
    ordered_json line{{"id", item.id}};
    if (const auto found = asked.find(asked_id(item)); found != asked.end()) {
      line["context"] = {
          {"id", found->second.row_id}, {"file", found->second.place.file}, {"row", found->second.place.row}};
      line["question"] = item.attribute.empty() ? found->second.question : item.attribute;
    }
    if (run.scores) line["references"] = item.references;
    line["prediction"] = item.prediction ? ordered_json(*item.prediction) : ordered_json(nullptr);
    for (const auto& [name, value] : items.scores(item.id)) line["scores"][name] = value;
    lines += line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  }
  write_whole(files, cell.job.output.path, "samples.jsonl", lines);
}

DifferencePair find_differences(const Eval& eval, const EvalCell& first, const ScoredCell& first_run,
                                const EvalCell& second, const ScoredCell& second_run, const AskedItems& asked,
                                size_t most) {
  DifferencePair pair{eval.models[first.model].name,
                      eval.datasets[first.dataset].name,
                      eval.methods[first.method].label,
                      eval.methods[second.method].label,
                      0,
                      0,
                      {}};
  const MetricItems both = join_runs(first_run.predictions, second_run.predictions);
  const Scores equal = score_items(find_metric("agreement"), both.items, {0, 0});
  const RunItems left(first_run), right(second_run);
  pair.compared = static_cast<int64_t>(both.items.size());
  for (size_t i = 0; i < both.items.size(); ++i) {
    if (equal.items[i] > 0) continue;
    ++pair.differing;
    if (pair.shown.size() == most) continue;
    const MetricItem& item = both.items[i];
    Difference difference;
    difference.id = item.id;
    difference.question = item.attribute;
    if (const MetricItem* gold = left.find(item.id)) difference.references = reference_texts(*gold);
    if (const auto found = asked.find(asked_id(item)); found != asked.end()) {
      difference.context = excerpt(found->second.context,
                                   difference.references.value_or(std::vector<std::string>{}), kExcerpt);
      if (item.attribute.empty()) difference.question = found->second.question;
    }
    const auto reference = reference_texts(item);
    difference.first = {reference.empty() ? "(null)" : reference.front(), left.scores(item.id)};
    difference.second = {answer_text(item.prediction), right.scores(item.id)};
    pair.shown.push_back(std::move(difference));
  }
  return pair;
}

}  // namespace sheaf

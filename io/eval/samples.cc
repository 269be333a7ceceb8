#include "io/eval/samples.h"

#include <fmt/ranges.h>

namespace sheaf {
namespace {

using nlohmann::ordered_json;

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
  explicit RunItems(const ScoredRun& run) : run_(run) {
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
  const ScoredRun& run_;
  std::unordered_map<std::string, size_t> by_id_;
};

}  // namespace

AskedItems read_asked(const Job& job) {
  AskedItems items;
  for_each_asked(job, [&](const AskedItem& item) { return items.emplace(item.id, item), true; });
  return items;
}

void write_samples(FileLayer& files, const EvalCell& cell, const ScoredRun& run, const AskedItems& asked) {
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

DifferencePair find_differences(const Eval& eval, const EvalCell& first, const ScoredRun& first_run,
                                const EvalCell& second, const ScoredRun& second_run, const AskedItems& asked,
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

#include "core/metrics/metric.h"

#include <algorithm>
#include <array>
#include <fmt/ranges.h>
#include <map>
#include <ranges>
#include <unordered_map>

#include "core/base/error.h"
#include "core/metrics/metrics.h"
#include "core/metrics/python_text.h"

namespace sheaf {

std::span<const Metric> all_metrics() {
  static const std::array metrics = {
      squad_metric(),     squad1_metric(),     exact_match_metric(), subspan_em_metric(),
      hotpotqa_metric(),  musique_metric(),    rouge_l_metric(),     rouge_l_stem_metric(),
      accuracy_metric(),  quac_metric(),       drop_metric(),        answer_list_metric(),
      longbench_metric(), attributes_metric(), judged_metric(),      agreement_metric()};
  return metrics;
}

const Metric& find_metric(std::string_view name) {
  const std::span<const Metric> all = all_metrics();
  const auto found = std::ranges::find(all, name, &Metric::name);
  if (found == all.end())
    refuse("unknown metric \"{}\"; use one of {}", name,
           fmt::join(std::views::transform(all, &Metric::name), ", "));
  return *found;
}

Scores score_items(const Metric& metric, std::span<const MetricItem> items, const ScoreOptions& options) {
  const auto width = static_cast<size_t>(metric.terms), kept = metric.scores.size();
  Scores scores;
  scores.metric = &metric;
  scores.items.resize(items.size() * kept);
  std::unordered_map<std::string_view, size_t> units;
  std::vector<double> terms(width);
  for (size_t i = 0; i < items.size(); ++i) {
    const MetricItem& item = items[i];
    const size_t next = scores.units.size() / width;
    const size_t unit = item.unit.empty() ? next : units.emplace(item.unit, next).first->second;
    if (unit == next) scores.units.resize((next + 1) * width);
    std::fill(terms.begin(), terms.end(), 0.0);
    const std::span<double> own = std::span(scores.items).subspan(i * kept, kept);
    metric.measure(item, terms, own);
    for (size_t t = 0; t < width; ++t) scores.units[unit * width + t] += terms[t];
  }
  scores.unit_count = static_cast<int64_t>(scores.units.size() / width);
  std::vector<double> sums(width);
  for (size_t unit = 0; unit * width < scores.units.size(); ++unit) {
    const std::span<double> own = std::span(scores.units).subspan(unit * width, width);
    if (metric.close_unit != nullptr) metric.close_unit(own);
    for (size_t t = 0; t < width; ++t) sums[t] += own[t];
  }
  scores.values.resize(metric.values.size());
  metric.evaluate(sums, scores.values);
  scores.intervals = resample_intervals(scores, options);
  return scores;
}

namespace {

/// Sums of a metric by category and attribute.
class GroupSums {
 public:
  explicit GroupSums(const Metric& metric) : metric_(metric) {}

  /// Adds an item to its category and, where it has one, to its attribute.
  void add(const MetricItem& item, std::string_view category, std::string_view attribute) {
    const auto width = static_cast<size_t>(metric_.terms);
    std::vector<double> terms(width), scores(metric_.scores.size());
    metric_.measure(item, terms, scores);
    for (const std::string_view part : {std::string_view(), attribute}) {
      auto& sum = sums_[{category, part}];
      sum.resize(width);
      for (size_t t = 0; t < width; ++t) sum[t] += terms[t];
      if (attribute.empty()) break;
    }
  }

  std::vector<Group> groups() && {
    std::vector<Group> groups;
    for (auto& [name, sum] : sums_) {
      Group& group = groups.emplace_back(Group{std::string(name.first), std::string(name.second), {}});
      group.values.resize(metric_.values.size());
      if (metric_.close_unit != nullptr) metric_.close_unit(sum);
      metric_.evaluate(sum, group.values);
    }
    return groups;
  }

 private:
  const Metric& metric_;
  std::map<std::pair<std::string_view, std::string_view>, std::vector<double>> sums_;
};

}  // namespace

std::vector<Group> break_down(const Metric& metric, std::span<const MetricItem> items) {
  GroupSums sums(metric);
  for (const MetricItem& item : items) {
    const std::string_view category =
        metric.group != nullptr ? metric.group(item) : std::string_view(item.category);
    if (!category.empty()) sums.add(item, category, item.attribute);
  }
  return std::move(sums).groups();
}

std::vector<Group> break_down_by_type(const Metric& metric, std::span<const MetricItem> items) {
  GroupSums sums(metric);
  for (const MetricItem& item : items)
    if (!item.type.empty()) sums.add(item, item.type, "");
  return std::move(sums).groups();
}

std::vector<double> macro_scores(std::span<const Group> groups) {
  constexpr size_t kScores = 3;
  constexpr size_t nv = 4, vw = 7;  // invented, missed, right, wrong
  std::vector<double> sums(kScores);
  double count = 0;
  for (const Group& group : groups) {
    double values = 0;
    for (size_t v = nv; v <= vw; ++v) values += group.values[v];
    if (group.attribute.empty() || values == 0) continue;
    ++count;
    for (size_t s = 0; s < kScores; ++s) sums[s] += group.values[s];
  }
  for (double& sum : sums) sum = count > 0 ? python::round_to_cents(sum / count) : 0;
  return sums;
}

}  // namespace sheaf

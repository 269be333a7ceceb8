#include "core/metrics/metric.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "core/base/error.h"
#include "core/metrics/metrics.h"
#include "core/metrics/resample.h"

namespace sheaf {

std::span<const Metric> all_metrics() {
  static const std::array metrics = {
      squad_metric(),   squad1_metric(),     exact_match_metric(),  subspan_em_metric(), hotpotqa_metric(),
      musique_metric(), rouge_l_metric(),    rouge_l_stem_metric(), accuracy_metric(),   quac_metric(),
      drop_metric(),    attributes_metric(), judged_metric(),       agreement_metric()};
  return metrics;
}

const Metric& find_metric(std::string_view name) {
  std::string known;
  for (const Metric& metric : all_metrics()) {
    if (metric.name == name) return metric;
    known += (known.empty() ? "" : ", ") + std::string(metric.name);
  }
  refuse("unknown metric \"{}\"; use one of {}", name, known);
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

}  // namespace sheaf

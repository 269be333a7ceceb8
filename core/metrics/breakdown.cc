#include "core/metrics/breakdown.h"

#include <algorithm>
#include <map>

#include "core/metrics/python_text.h"

namespace sheaf {

std::vector<Group> break_down(const Metric& metric, std::span<const MetricItem> items) {
  std::map<std::pair<std::string_view, std::string_view>, std::vector<double>> sums;
  const auto width = static_cast<size_t>(metric.terms);
  std::vector<double> terms(width), scores(metric.scores.size());
  for (const MetricItem& item : items) {
    const std::string_view category =
        metric.group != nullptr ? metric.group(item) : std::string_view(item.category);
    if (category.empty()) continue;
    std::fill(terms.begin(), terms.end(), 0.0);
    std::fill(scores.begin(), scores.end(), 0.0);
    metric.measure(item, terms, scores);
    for (const std::string_view attribute : {std::string_view(), std::string_view(item.attribute)}) {
      auto& sum = sums[{category, attribute}];
      sum.resize(width);
      for (size_t t = 0; t < width; ++t) sum[t] += terms[t];
      if (item.attribute.empty()) break;
    }
  }
  std::vector<Group> groups;
  for (auto& [name, sum] : sums) {
    groups.push_back({std::string(name.first), std::string(name.second), {}});
    Group& group = groups.back();
    group.values.resize(metric.values.size());
    if (metric.close_unit != nullptr) metric.close_unit(sum);
    metric.evaluate(sum, group.values);
  }
  return groups;
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

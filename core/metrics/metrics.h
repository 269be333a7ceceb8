#pragma once
#include <algorithm>
#include <cmath>

#include "core/metrics/metric.h"

namespace sheaf {

/// Sums of a metric whose values are means of its scores: what `score` gives an item, then the count of
/// items. An item whose first score is NaN does not count.
template <void (*score)(const MetricItem& item, std::span<double> scores)>
void measure_mean(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  score(item, scores);
  if (std::isnan(scores[0])) return;
  std::ranges::copy(scores, terms.begin());
  terms.back() = 1;
}

template <int best>
void evaluate_mean(std::span<const double> sums, std::span<double> values) {
  for (size_t i = 0; i + 1 < sums.size(); ++i) values[i] = best * sums[i] / sums.back();
  values.back() = sums.back();
}

/// A metric whose values are the means of its scores, under the same names, and the count of items. `right`:
/// the score that is 0 or 1; -1: none.
template <void (*score)(const MetricItem& item, std::span<double> scores), int best = 1>
Metric mean_metric(std::string_view name, std::string_view about, std::span<const Metric::ValueName> values,
                   int32_t right) {
  return {.name = name,
          .about = about,
          .values = values,
          .scores = values.first(values.size() - 1),
          .right = right,
          .terms = static_cast<int32_t>(values.size()),
          .best = best,
          .measure = measure_mean<score>,
          .evaluate = evaluate_mean<best>};
}

/// Where 95 % of the values lie when the units are drawn again, with replacement, as often as there are units
/// (percentile bootstrap). Nothing for counts and for values that too few draws have.
std::vector<std::optional<Interval>> resample_intervals(const Scores& scores, const ScoreOptions& options);

/// The middle 95 % of `values`, with linear interpolation between neighbours; NaNs left out. Nothing where
/// fewer than half are numbers.
std::optional<Interval> middle_95(std::vector<double> values);

/// The sign test, two-sided and exact: how often tosses of a fair coin fall at least as unevenly as a to b.
double coin_p_value(int64_t a, int64_t b);

Metric squad_metric();
Metric squad1_metric();
Metric exact_match_metric();
Metric subspan_em_metric();
Metric hotpotqa_metric();
Metric musique_metric();
Metric rouge_l_metric();
Metric rouge_l_stem_metric();
Metric accuracy_metric();
Metric agreement_metric();
Metric quac_metric();
Metric drop_metric();
Metric answer_list_metric();
Metric longbench_metric();
Metric attributes_metric();
Metric judged_metric();

}  // namespace sheaf

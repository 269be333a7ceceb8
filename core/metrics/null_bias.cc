#include "core/metrics/null_bias.h"

#include <algorithm>

namespace sheaf {
namespace {

constexpr double kStep = 0.25, kWidest = 10;

bool turns_null(const MetricItem& item, double bias) {
  return item.null_margin && item.prediction && !item.prediction->empty() && bias > *item.null_margin;
}

}  // namespace

int64_t values_without_margin(std::span<const MetricItem> items) {
  return std::ranges::count_if(items, [](const MetricItem& item) {
    return item.prediction && !item.prediction->empty() && !item.null_margin;
  });
}

std::vector<BiasScores> sweep_null_bias(std::span<const MetricItem> items, double ran_with) {
  const Metric& metric = find_metric("attributes");
  std::vector<MetricItem> now(items.begin(), items.end());
  std::vector<BiasScores> sweep;
  for (double bias = ran_with; bias <= ran_with + kWidest; bias += kStep) {
    for (MetricItem& item : now)
      if (turns_null(item, bias)) item.prediction->clear();
    const Scores scores = score_items(metric, now, {.resamples = 0});
    sweep.push_back({bias, scores.values[0], scores.values[1], scores.values[2]});
    const bool more = std::ranges::any_of(
        now, [&](const MetricItem& item) { return turns_null(item, ran_with + kWidest); });
    if (!more) break;
  }
  return sweep;
}

const BiasScores& best_bias(std::span<const BiasScores> sweep) {
  return *std::ranges::max_element(sweep, {}, &BiasScores::f1);
}

}  // namespace sheaf

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/random_stream.h"
#include "core/metrics/metrics.h"

namespace sheaf {
namespace {

/// Which unit is drawn `draw`th in resample `resample`: 0 to units - 1, equal for all runs of as many units.
size_t draw_unit(uint64_t seed, int32_t resample, size_t draw, size_t units) {
  const uint64_t random = mix(mix(seed, static_cast<uint64_t>(resample)), draw);
  return static_cast<size_t>((random >> 32) * units >> 32);
}

std::optional<Comparison::McNemar> count_discordant(const Scores& first, const Scores& second) {
  const Metric& metric = *first.metric;
  const size_t kept = metric.scores.size();
  // Values of one document are not tosses of their own.
  const bool alone = first.items.size() == static_cast<size_t>(first.unit_count) * kept;
  if (metric.right < 0 || !alone) return std::nullopt;
  Comparison::McNemar test;
  for (auto i = static_cast<size_t>(metric.right); i < first.items.size(); i += kept) {
    if (first.items[i] > second.items[i]) ++test.only_first;
    if (first.items[i] < second.items[i]) ++test.only_second;
  }
  test.p_value = coin_p_value(test.only_first, test.only_second);
  return test;
}

}  // namespace

double coin_p_value(int64_t a, int64_t b) {
  const auto n = static_cast<double>(a + b);
  double sum = 0;
  for (int64_t k = 0; k <= std::min(a, b); ++k) {
    const auto at = static_cast<double>(k);
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(at + 1) - std::lgamma(n - at + 1) - n * std::log(2.0));
  }
  return std::min(1.0, 2 * sum);
}

std::optional<Interval> middle_95(std::vector<double> values) {
  const size_t all = values.size();
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty() || values.size() * 2 < all) return std::nullopt;
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<size_t>(place);
    const size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (values[high] - values[low]) * (place - static_cast<double>(low));
  };
  return Interval{at(0.025), at(0.975)};
}

std::vector<std::optional<Interval>> resample_intervals(const Scores& scores, const ScoreOptions& options) {
  const Metric& metric = *scores.metric;
  const auto width = static_cast<size_t>(metric.terms), units = static_cast<size_t>(scores.unit_count);
  const size_t count = metric.values.size();
  std::vector<std::optional<Interval>> intervals(count);
  if (options.resamples <= 0 || units == 0) return intervals;
  std::vector<std::vector<double>> drawn(count);
  std::vector<double> sums(width), values(count);
  for (int32_t resample = 0; resample < options.resamples; ++resample) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (size_t draw = 0; draw < units; ++draw) {
      const double* own = &scores.units[draw_unit(options.seed, resample, draw, units) * width];
      for (size_t t = 0; t < width; ++t) sums[t] += own[t];
    }
    metric.evaluate(sums, values);
    for (size_t v = 0; v < count; ++v) drawn[v].push_back(values[v]);
  }
  for (size_t v = 0; v < count; ++v)
    if (!metric.values[v].is_count) intervals[v] = middle_95(std::move(drawn[v]));
  return intervals;
}

// The interval of a difference comes from drawing the units of both runs together (paired bootstrap), its
// p-value from swapping the two runs' units at random (randomization test).
Comparison compare_scores(const Scores& first, const Scores& second, const ScoreOptions& options) {
  const Metric& metric = *first.metric;
  if (second.metric != first.metric || first.units.size() != second.units.size() ||
      first.items.size() != second.items.size())
    fail("the two runs were not scored on the same items");
  const auto width = static_cast<size_t>(metric.terms), units = static_cast<size_t>(first.unit_count);
  const size_t count = metric.values.size();
  std::vector<double> before(count), after(count);
  // The values of both runs from their sums, second less first.
  const auto differences = [&](const std::vector<double>& of_first,
                               const std::vector<double>& of_second) -> const std::vector<double>& {
    metric.evaluate(of_first, before);
    metric.evaluate(of_second, after);
    for (size_t v = 0; v < count; ++v) after[v] -= before[v];
    return after;
  };
  std::vector<std::vector<double>> drawn(count);
  std::vector<int64_t> as_large(count);
  std::vector<double> a(width), b(width), c(width), d(width);
  constexpr uint64_t kSwaps = 0x5357415053;  // a stream of its own beside the draws
  for (int32_t resample = 0; resample < options.resamples; ++resample) {
    for (auto* sums : {&a, &b, &c, &d}) std::fill(sums->begin(), sums->end(), 0.0);
    const uint64_t swaps = mix(mix(options.seed, kSwaps), static_cast<uint64_t>(resample));
    for (size_t unit = 0; unit < units; ++unit) {
      const size_t draw = draw_unit(options.seed, resample, unit, units) * width, own = unit * width;
      const bool swap = (mix(swaps, unit) >> 63) != 0;
      const double *x = &first.units[own], *y = &second.units[own];
      if (swap) std::swap(x, y);
      for (size_t t = 0; t < width; ++t) {
        a[t] += first.units[draw + t];
        b[t] += second.units[draw + t];
        c[t] += x[t];
        d[t] += y[t];
      }
    }
    const std::vector<double>& sample = differences(a, b);
    for (size_t v = 0; v < count; ++v) drawn[v].push_back(sample[v]);
    const std::vector<double>& swapped = differences(c, d);
    for (size_t v = 0; v < count; ++v) {
      // Sums in another order differ in their last bits.
      const double seen = std::abs(second.values[v] - first.values[v]);
      if (std::abs(swapped[v]) >= seen * (1 - 1e-9)) ++as_large[v];
    }
  }
  Comparison comparison;
  comparison.values.resize(count);
  for (size_t v = 0; v < count; ++v) {
    const auto interval = middle_95(std::move(drawn[v]));
    if (metric.values[v].is_count || !interval) continue;
    comparison.values[v] = {
        second.values[v] - first.values[v], *interval,
        static_cast<double>(as_large[v] + 1) / static_cast<double>(options.resamples + 1)};
  }
  comparison.mcnemar = count_discordant(first, second);
  return comparison;
}

}  // namespace sheaf

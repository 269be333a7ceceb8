#include "core/metrics/resample.h"

#include <algorithm>
#include <cmath>

#include "core/base/random_stream.h"

namespace sheaf {

size_t draw_unit(uint64_t seed, int32_t resample, size_t draw, size_t units) {
  const uint64_t random = mix(mix(seed, static_cast<uint64_t>(resample)), draw);
  return static_cast<size_t>((random >> 32) * units >> 32);
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

}  // namespace sheaf

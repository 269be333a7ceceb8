#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/metrics/metric.h"

namespace sheaf {

/// The scores that a run would have with another method.null_bias.
struct BiasScores {
  double bias = 0;
  double precision = 0, recall = 0, f1 = 0;
};

/// Values that do not know their margin stay in a sweep.
int64_t values_without_margin(std::span<const MetricItem> items);

/// From the bias `ran_with` upward in quarters, until all values that know their margin are null. The items
/// are of the metric `attributes`. A smaller bias makes values of nulls, which nobody has decoded: it needs a
/// run.
std::vector<BiasScores> sweep_null_bias(std::span<const MetricItem> items, double ran_with);

/// The one with the highest F1, the smallest bias on a tie.
const BiasScores& best_bias(std::span<const BiasScores> sweep);

}  // namespace sheaf

#pragma once
#include <optional>
#include <vector>

#include "core/metrics/metric.h"

namespace sheaf {

/// Where 95 % of the values lie when the units are drawn anew, with replacement, as often as there are units
/// (percentile bootstrap). Nothing for counts and for values that too few draws have.
std::vector<std::optional<Interval>> resample_intervals(const Scores& scores, const ScoreOptions& options);

/// The middle 95 % of `values`, with linear interpolation between neighbours; NaNs left out. Nothing where
/// fewer than half are numbers.
std::optional<Interval> middle_95(std::vector<double> values);

/// Which unit is drawn `draw`th in resample `resample`: 0 to units - 1. The same for every run of as many
/// units.
size_t draw_unit(uint64_t seed, int32_t resample, size_t draw, size_t units);

}  // namespace sheaf

#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/metrics/metric.h"

namespace sheaf {

/// The values of the items of one category (drop: one kind of answer), or of one attribute of one category.
struct Group {
  std::string category;
  std::string attribute;       ///< empty: all of the category's
  std::vector<double> values;  ///< one for each of the metric's
};

/// Categories in alphabetical order, each before its attributes. Empty where the items have no category.
std::vector<Group> break_down(const Metric& metric, std::span<const MetricItem> items);

/// ExtractGPT's macro scores: precision, recall and F1 averaged over the attributes of all categories that
/// have a value, wanted or given. `groups`: of the metric `attributes`.
std::vector<double> macro_scores(std::span<const Group> groups);

}  // namespace sheaf

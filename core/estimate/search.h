#pragma once
#include <functional>
#include <vector>

namespace sheaf {

/// Non-negative numbers, from `start` on, for which `loss` is least: one after the other is made larger,
/// or smaller by ever smaller factors, and made zero where that is better still. For a handful of numbers and
/// a smooth loss.
std::vector<double> least(std::vector<double> start,
                          const std::function<double(const std::vector<double>&)>& loss);

}  // namespace sheaf

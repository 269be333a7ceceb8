#pragma once
#include <cstddef>
#include <vector>

namespace sheaf {

/// The largest sum of `scores` [rows × columns] that pairing rows with columns, each at most once, can have.
double best_assignment(const std::vector<double>& scores, size_t rows, size_t columns);

}  // namespace sheaf

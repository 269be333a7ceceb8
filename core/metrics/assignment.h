#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sheaf {

constexpr size_t kUnpaired = static_cast<size_t>(-1);

/// The column of each row, or kUnpaired, where rows are paired with columns, each at most once, so that the
/// sum of their `scores` [rows × columns] is the largest. Every row has a column if there are enough.
std::vector<size_t> pair_best(const std::vector<double>& scores, size_t rows, size_t columns);

/// The sum of `scores` that pair_best() reaches.
double best_assignment(const std::vector<double>& scores, size_t rows, size_t columns);

/// The entry of a prediction, or kUnpaired, for each entry of gold, so that as many fields as possible are
/// right; of equal pairings the one that keeps the order best. `right`: fields that would be [gold × given].
/// At most kMostPaired entries on each side.
std::vector<size_t> pair_entries(const std::vector<int64_t>& right, size_t gold, size_t given);

constexpr size_t kMostPaired = 256;  ///< pairing takes the cube of their number

}  // namespace sheaf

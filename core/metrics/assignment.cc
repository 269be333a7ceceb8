#include "core/metrics/assignment.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"

namespace sheaf {

// The Hungarian method with potentials: rows are paired one by one, each along the cheapest path of
// exchanges. O(n³).
std::vector<size_t> pair_best(const std::vector<double>& scores, size_t rows, size_t columns) {
  const size_t n = std::max(rows, columns);
  // Rows and columns count from 1; what is missing to make the table square costs nothing.
  const auto cost = [&](size_t row, size_t column) {
    return row <= rows && column <= columns ? -scores[(row - 1) * columns + column - 1] : 0;
  };
  std::vector<double> row_potential(n + 1), column_potential(n + 1);
  std::vector<size_t> partner(n + 1);  // row of a column; 0: none
  for (size_t row = 1; row <= n; ++row) {
    std::vector<double> least(n + 1, std::numeric_limits<double>::infinity());
    std::vector<size_t> from(n + 1);
    std::vector<bool> done(n + 1);
    size_t column = 0;
    partner[0] = row;
    while (partner[column] != 0) {
      done[column] = true;
      const size_t current = partner[column];
      double step = std::numeric_limits<double>::infinity();
      size_t next = 0;
      for (size_t j = 1; j <= n; ++j) {
        if (done[j]) continue;
        const double reduced = cost(current, j) - row_potential[current] - column_potential[j];
        if (reduced < least[j]) {
          least[j] = reduced;
          from[j] = column;
        }
        if (least[j] < step) {
          step = least[j];
          next = j;
        }
      }
      for (size_t j = 0; j <= n; ++j) {
        if (done[j]) {
          row_potential[partner[j]] += step;
          column_potential[j] -= step;
        } else {
          least[j] -= step;
        }
      }
      column = next;
    }
    for (; column != 0; column = from[column]) partner[column] = partner[from[column]];
  }
  std::vector<size_t> pairs(rows, kUnpaired);
  for (size_t column = 1; column <= columns; ++column)
    if (partner[column] >= 1 && partner[column] <= rows) pairs[partner[column] - 1] = column - 1;
  return pairs;
}

double best_assignment(const std::vector<double>& scores, size_t rows, size_t columns) {
  const std::vector<size_t> pairs = pair_best(scores, rows, columns);
  // Added by row, as the scores of the rows are averaged elsewhere.
  double sum = 0;
  for (size_t row = 0; row < rows; ++row)
    if (pairs[row] != kUnpaired) sum += scores[row * columns + pairs[row]];
  return sum;
}

std::vector<size_t> pair_entries(const std::vector<int64_t>& right, size_t gold, size_t given) {
  if (gold > kMostPaired || given > kMostPaired) fail("{} and {} entries to pair", gold, given);
  // Whole numbers below 2^53, so all sums are exact: a right field outweighs all differences of places. Their
  // squares make pairs that cross cost more than pairs that do not.
  constexpr double kField = 1 + kMostPaired * kMostPaired * kMostPaired;
  std::vector<double> scores(right.size());
  for (size_t i = 0; i < gold; ++i)
    for (size_t j = 0; j < given; ++j) {
      const double apart = static_cast<double>(i) - static_cast<double>(j);
      scores[i * given + j] = kField * static_cast<double>(right[i * given + j]) - apart * apart;
    }
  return pair_best(scores, gold, given);
}

}  // namespace sheaf

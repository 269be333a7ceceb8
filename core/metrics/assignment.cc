#include "core/metrics/assignment.h"

#include <algorithm>
#include <limits>

namespace sheaf {

// The Hungarian method with potentials: rows are paired one by one, each along the cheapest path of
// exchanges. O(n³).
double best_assignment(const std::vector<double>& scores, size_t rows, size_t columns) {
  const size_t n = std::max(rows, columns);
  const auto cost = [&](size_t row,
                        size_t column) {  // from 1; what is missing to make it square costs nothing
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
  // Added by row, as the scores of the rows are averaged elsewhere.
  std::vector<double> by_row(n + 1);
  for (size_t column = 1; column <= n; ++column) by_row[partner[column]] = -cost(partner[column], column);
  double sum = 0;
  for (size_t row = 1; row <= n; ++row) sum += by_row[row];
  return sum;
}

}  // namespace sheaf

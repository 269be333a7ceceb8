#include "cpu/stacked_rows.h"

#include <algorithm>
#include <cstddef>

#include "core/base/error.h"

namespace sheaf {

StackedRows::StackedRows(std::initializer_list<const Matrix*> matrices, RowOrder order)
    : order_(order), matrices_(matrices), inputs_((*matrices.begin())->cols) {
  for (const Matrix* matrix : matrices_) {
    if (matrix->cols != inputs_)
      fail("{}: there are {} columns, but {} are expected", matrix->name, matrix->cols, inputs_);
    outputs_ += order == RowOrder::stacked ? matrix->rows : round_up_to_panel(matrix->rows);
  }
}

int64_t StackedRows::read_panel(int64_t panel, float* out) const {
  int64_t filled = 0;
  const auto read = [&](const Matrix& matrix, int64_t from, int64_t to) {
    from = std::max<int64_t>(from, 0);
    to = std::min(to, matrix.rows);
    if (from >= to) return;
    matrix.read(from, to - from, out + filled * inputs_);
    filled += to - from;
  };
  if (order_ == RowOrder::in_turns) {
    const auto count = static_cast<int64_t>(matrices_.size());
    const int64_t first = panel / count * kPanel;
    read(*matrices_[static_cast<size_t>(panel % count)], first, first + kPanel);
  } else {
    int64_t begin = 0;  // of the matrix
    for (const Matrix* matrix : matrices_) {
      read(*matrix, panel * kPanel - begin, (panel + 1) * kPanel - begin);
      begin += matrix->rows;
    }
  }
  std::fill(out + filled * inputs_, out + kPanel * inputs_, 0.0f);
  return filled;
}

}  // namespace sheaf

#include "cpu/stacked_rows.h"

#include <algorithm>

#include "core/base/error.h"

namespace sheaf {

StackedRows::StackedRows(std::initializer_list<const Matrix*> matrices)
    : matrices_(matrices), inputs_((*matrices.begin())->cols) {
  for (const Matrix* matrix : matrices_) {
    if (matrix->cols != inputs_)
      fail("{}: there are {} columns, but {} are expected", matrix->name, matrix->cols, inputs_);
    outputs_ += matrix->rows;
  }
}

int64_t StackedRows::read(int64_t first, int64_t count, float* out) const {
  int64_t filled = 0;
  int64_t begin = 0;
  for (const Matrix* matrix : matrices_) {
    const int64_t from = std::max(first, begin) - begin;
    const int64_t to = std::min(first + count, begin + matrix->rows) - begin;
    if (from < to) {
      matrix->read(from, to - from, out + filled * inputs_);
      filled += to - from;
    }
    begin += matrix->rows;
  }
  std::fill(out + filled * inputs_, out + count * inputs_, 0.0f);
  return filled;
}

}  // namespace sheaf

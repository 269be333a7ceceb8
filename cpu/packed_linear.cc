#include <algorithm>
#include <array>
#include <cstddef>

#include "core/base/error.h"
#include "cpu/linear.h"

namespace sheaf {
namespace {

// A piece of a panel that stays in a 64 KB first cache beside the rows, and a block of rows that stays in the
// second.
constexpr int64_t kDepthBlock = 512;
constexpr int64_t kRowBlock = 128;

/// Few rows take several panels at once; many rows make one panel enough work for a task.
int64_t panels_per_task(const Kernels& kernels, int64_t rows) {
  return std::max<int64_t>(kernels.panels_at_once, rows >= 16 ? 1 : rows >= 3 ? 2 : 4);
}

/// Panels [first, first + count) of the product, y from their first output on.
void multiply(const PackedLinear& linear, const Kernels& kernels, int64_t first, int64_t count,
              const float* x, int64_t x_stride, int64_t rows, float* y, int64_t y_stride) {
  std::array<const float*, kRowBlock> a;
  std::array<float*, kRowBlock> c;
  for (int64_t k = 0; k < linear.inputs; k += kDepthBlock) {
    const int64_t depth = std::min(kDepthBlock, linear.inputs - k);
    const float* b = linear.panels.data() + first * kPanel * linear.inputs + k * kPanel;
    for (int64_t row = 0; row < rows; row += kRowBlock) {
      const int64_t block = std::min(kRowBlock, rows - row);
      for (int64_t i = 0; i < block; ++i) {
        a[static_cast<size_t>(i)] = x + (row + i) * x_stride + k;
        c[static_cast<size_t>(i)] = y + (row + i) * y_stride;
      }
      kernels.multiply(a.data(), c.data(), block, b, kPanel, kPanel * linear.inputs, depth, count, k > 0);
    }
  }
}

}  // namespace

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

PackedLinear pack(std::initializer_list<const Matrix*> matrices, RowOrder order, ThreadPool& pool) {
  const StackedRows stacked(matrices, order);
  PackedLinear linear;
  linear.inputs = stacked.inputs();
  linear.outputs = stacked.outputs();
  linear.panels = FloatBuffer(stacked.panels() * kPanel * linear.inputs, "the model's weights as fp32");
  stacked.each_panel(pool, [&](int64_t p, const float* rows, int64_t) {
    float* panel = linear.panels.data() + p * kPanel * linear.inputs;
    for (int64_t k = 0; k < linear.inputs; ++k)
      for (int64_t n = 0; n < kPanel; ++n) panel[k * kPanel + n] = rows[n * linear.inputs + k];
  });
  return linear;
}

void apply(const PackedLinear& linear, const Kernels& kernels, ThreadPool& pool, const float* x,
           int64_t x_stride, int64_t rows, float* y, int64_t y_stride) {
  const int64_t panels = round_up_to_panel(linear.outputs) / kPanel;
  const int64_t per_task = panels_per_task(kernels, rows);
  pool.run((panels + per_task - 1) / per_task, [&](int64_t task, int) {
    const int64_t first = task * per_task;
    multiply(linear, kernels, first, std::min(per_task, panels - first), x, x_stride, rows,
             y + first * kPanel, y_stride);
  });
}

std::vector<float> biases_in_turns(const Matrix& gate, const Matrix& up) {
  if (gate.empty() && up.empty()) return {};
  std::vector<float> turns(static_cast<size_t>(2 * round_up_to_panel(std::max(gate.cols, up.cols))), 0.0f);
  int64_t shift = 0;
  for (const Matrix* bias : {&gate, &up}) {
    const std::vector<float> values = bias->read_all();
    for (int64_t i = 0; i < std::ssize(values); ++i)
      turns[static_cast<size_t>(i / kPanel * 2 * kPanel + shift + i % kPanel)] =
          values[static_cast<size_t>(i)];
    shift += kPanel;
  }
  return turns;
}

void Gating::run(float* both, int64_t first, int64_t pairs, int64_t rows, float* y, int64_t y_stride) const {
  const int64_t width = pairs * 2 * kPanel;
  if (bias != nullptr)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < width; ++i) both[row * width + i] += bias[first * 2 * kPanel + i];
  for (int64_t pair = 0; pair < pairs; ++pair)
    gated(both + pair * 2 * kPanel, width, rows, y + (first + pair) * kPanel, y_stride);
}

void apply_gated(const PackedLinear& linear, const Kernels& kernels, const Gating& gating, ThreadPool& pool,
                 const float* x, int64_t x_stride, int64_t rows, float* y, int64_t y_stride) {
  constexpr int64_t kMost = 4;
  const int64_t pairs = linear.outputs / (2 * kPanel);
  const int64_t per_task = std::clamp<int64_t>(panels_per_task(kernels, rows) / 2, 1, kMost);
  pool.run((pairs + per_task - 1) / per_task, [&](int64_t task, int) {
    const int64_t first = task * per_task, count = std::min(per_task, pairs - first);
    const int64_t width = count * 2 * kPanel;
    alignas(64) std::array<float, kRowBlock * kMost * 2 * kPanel> both;
    for (int64_t row = 0; row < rows; row += kRowBlock) {
      const int64_t block = std::min(kRowBlock, rows - row);
      multiply(linear, kernels, 2 * first, 2 * count, x + row * x_stride, x_stride, block, both.data(),
               width);
      gating.run(both.data(), first, count, block, y + row * y_stride, y_stride);
    }
  });
}

}  // namespace sheaf

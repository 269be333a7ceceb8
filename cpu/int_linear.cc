#include <algorithm>
#include <array>
#include <cstddef>

#include "cpu/linear.h"

namespace sheaf {
namespace {

// Rows of a block stay near the first cache while the panels of a task pass over them.
constexpr int64_t kRowBlock = 96;

/// Few rows are bound by reading weights, which is fastest in long runs; many rows by work, shared out
/// evenly.
int64_t panels_per_task(const IntKernels& kernels, const ThreadPool& pool, int64_t panels, int64_t rows) {
  if (pool.size() == 1) return panels;
  const int64_t runs = int64_t{2} * pool.size();
  if (rows >= 64) return std::clamp<int64_t>(panels / (2 * runs), 1, 3) * kernels.panels_at_once;
  if (rows >= 16) return 2 * kernels.panels_at_once;
  return std::max<int64_t>(4, (panels + runs - 1) / runs);
}

/// Rows [row, row + rows) times panels [first, first + count).
IntFactors factors_of(const IntLinear& linear, const IntKernels& kernels, const IntRows& x, int64_t row,
                      int64_t rows, int64_t first, int64_t count) {
  const int64_t panel_bytes = kernels.panels.bytes(linear.inputs, linear.planes);
  return {.a = x.from(row),
          .rows = rows,
          .b = linear.panels.data() + first * panel_bytes,
          .panels = count,
          .panel_stride = panel_bytes,
          .chunk_stride = kernels.panels.chunk_bytes(linear.planes),
          .chunks = kernels.panels.chunks(linear.inputs),
          .planes = linear.planes};
}

}  // namespace

IntLinear pack(std::initializer_list<const Matrix*> matrices, RowOrder order, int planes,
               const IntKernels& kernels, ThreadPool& pool) {
  const StackedRows stacked(matrices, order);
  IntLinear linear;
  linear.inputs = stacked.inputs();
  linear.outputs = stacked.outputs();
  linear.planes = planes;
  const int64_t panels = stacked.panels();
  const int64_t panel_bytes = kernels.panels.bytes(linear.inputs, planes);
  linear.panels = LargeBuffer<int8_t>(panels * panel_bytes, "the model's weights as whole numbers");
  linear.scales = FloatBuffer(panels * kPanel, "the scales of the model's weights");
  stacked.each_panel(pool, [&](int64_t p, const float* rows, int64_t filled) {
    for (int64_t n = 0; n < filled; ++n)
      linear.scales.data()[p * kPanel + n] =
          quantize(rows + n * linear.inputs, linear.inputs, planes, kernels.panels, n,
                   linear.panels.data() + p * panel_bytes);
  });
  return linear;
}

void IntRows::reserve(const IntKernels& kernels, int64_t rows, int64_t inputs, int planes) {
  layout_ = kernels.rows;
  inputs_ = inputs;
  planes_ = planes;
  const int64_t groups = (rows + layout_.together - 1) / layout_.together;
  data_.reserve(groups * layout_.bytes(inputs, planes), "rows as whole numbers");
  scales_.reserve(rows, "the scales of rows");
}

void IntRows::set(int64_t row, const float* x) {
  int8_t* group = data_.data() + row / layout_.together * layout_.bytes(inputs_, planes_);
  scales_.data()[row] = quantize(x, inputs_, planes_, layout_, row % layout_.together, group);
}

void apply(const IntLinear& linear, const IntKernels& kernels, ThreadPool& pool, const IntRows& x,
           int64_t first, int64_t rows, float* y, int64_t y_stride) {
  const int64_t panels = round_up_to_panel(linear.outputs) / kPanel;
  const int64_t per_task = panels_per_task(kernels, pool, panels, rows);
  pool.run((panels + per_task - 1) / per_task, [&](int64_t task, int) {
    const int64_t panel = task * per_task, count = std::min(per_task, panels - panel);
    std::array<float*, kRowBlock> c;
    for (int64_t row = 0; row < rows; row += kRowBlock) {
      const int64_t block = std::min(kRowBlock, rows - row);
      for (int64_t i = 0; i < block; ++i)
        c[static_cast<size_t>(i)] = y + (row + i) * y_stride + panel * kPanel;
      kernels.multiply(factors_of(linear, kernels, x, first + row, block, panel, count),
                       x.scales() + first + row, linear.scales.data() + panel * kPanel, c.data());
    }
  });
}

void apply_gated(const IntLinear& linear, const IntKernels& kernels, const Gating& gating, ThreadPool& pool,
                 const IntRows& x, int64_t first, int64_t rows, float* y, int64_t y_stride) {
  constexpr int64_t kRoom = kRowBlock * 2 * kPanel;
  const int64_t pairs = linear.outputs / (2 * kPanel);
  const int64_t per_task = std::max<int64_t>(1, panels_per_task(kernels, pool, 2 * pairs, rows) / 2);
  pool.run((pairs + per_task - 1) / per_task, [&](int64_t task, int) {
    const int64_t begin = task * per_task, end = std::min(begin + per_task, pairs);
    alignas(64) std::array<float, kRoom> both;
    std::array<float*, kRowBlock> c;
    for (int64_t row = 0; row < rows; row += kRowBlock) {
      const int64_t block = std::min(kRowBlock, rows - row);
      const int64_t most = kRoom / (block * 2 * kPanel);
      for (int64_t pair = begin; pair < end; pair += most) {
        const int64_t count = std::min(most, end - pair), width = count * 2 * kPanel;
        for (int64_t i = 0; i < block; ++i) c[static_cast<size_t>(i)] = both.data() + i * width;
        kernels.multiply(factors_of(linear, kernels, x, first + row, block, 2 * pair, 2 * count),
                         x.scales() + first + row, linear.scales.data() + 2 * pair * kPanel, c.data());
        gating.run(both.data(), pair, count, block, y + row * y_stride, y_stride);
      }
    }
  });
}

}  // namespace sheaf

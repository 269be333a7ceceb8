#include "cpu/int_linear.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "cpu/stacked_rows.h"

namespace sheaf {
namespace {

// Rows of a block stay in the second cache while a panel passes over them.
constexpr int64_t kRowBlock = 192;

}  // namespace

IntLinear pack(std::initializer_list<const Matrix*> matrices, int planes, const IntKernels& kernels,
               ThreadPool& pool) {
  const StackedRows stacked(matrices);
  IntLinear linear;
  linear.inputs = stacked.inputs();
  linear.outputs = stacked.outputs();
  linear.planes = planes;
  const int64_t panels = round_up_to_panel(linear.outputs) / kPanel;
  const int64_t panel_bytes = kernels.panels.bytes(linear.inputs, planes);
  linear.panels = LargeBuffer<int8_t>(panels * panel_bytes, "the model's weights as whole numbers");
  linear.scales = FloatBuffer(panels * kPanel, "the scales of the model's weights");
  std::vector<std::vector<float>> rows(static_cast<size_t>(pool.size()));
  pool.run(panels, [&](int64_t p, int thread) {
    std::vector<float>& scratch = rows[static_cast<size_t>(thread)];
    scratch.resize(static_cast<size_t>(kPanel * linear.inputs));
    const int64_t filled = stacked.read(p * kPanel, kPanel, scratch.data());
    for (int64_t n = 0; n < filled; ++n)
      linear.scales.data()[p * kPanel + n] =
          quantize(scratch.data() + n * linear.inputs, linear.inputs, planes, kernels.panels, n,
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
           int64_t rows, float* y, int64_t y_stride) {
  const int64_t panels = round_up_to_panel(linear.outputs) / kPanel;
  const int64_t panel_bytes = kernels.panels.bytes(linear.inputs, linear.planes);
  // Few rows are bound by reading weights, which is fastest in long runs; many rows by work, shared out
  // evenly.
  const int64_t runs = int64_t{2} * pool.size();
  const int64_t few = kernels.panels_at_once;
  const int64_t per_task = rows >= 64   ? few
                           : rows >= 16 ? 2 * few
                                        : std::max<int64_t>(4, (panels + runs - 1) / runs);
  pool.run((panels + per_task - 1) / per_task, [&](int64_t task, int) {
    const int64_t first = task * per_task;
    const int64_t count = std::min(per_task, panels - first);
    std::array<float*, kRowBlock> c;
    for (int64_t row = 0; row < rows; row += kRowBlock) {
      const int64_t block = std::min(kRowBlock, rows - row);
      for (int64_t i = 0; i < block; ++i)
        c[static_cast<size_t>(i)] = y + (row + i) * y_stride + first * kPanel;
      const IntFactors factors{.a = x.from(row),
                               .rows = block,
                               .b = linear.panels.data() + first * panel_bytes,
                               .panels = count,
                               .panel_stride = panel_bytes,
                               .chunk_stride = kernels.panels.chunk_bytes(linear.planes),
                               .chunks = kernels.panels.chunks(linear.inputs),
                               .planes = linear.planes};
      kernels.multiply(factors, x.scales() + row, linear.scales.data() + first * kPanel, c.data());
    }
  });
}

}  // namespace sheaf

#include "cpu/packed_linear.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "cpu/stacked_rows.h"

namespace sheaf {
namespace {

// A piece of a panel that stays in a 64 KB first cache beside the rows, and a block of rows that stays in the
// second.
constexpr int64_t kDepthBlock = 512;
constexpr int64_t kRowBlock = 128;

}  // namespace

PackedLinear pack(std::initializer_list<const Matrix*> matrices, ThreadPool& pool) {
  const StackedRows stacked(matrices);
  PackedLinear linear;
  linear.inputs = stacked.inputs();
  linear.outputs = stacked.outputs();
  const int64_t panels = round_up_to_panel(linear.outputs) / kPanel;
  linear.panels = FloatBuffer(panels * kPanel * linear.inputs, "the model's weights as fp32");
  std::vector<std::vector<float>> rows(static_cast<size_t>(pool.size()));
  pool.run(panels, [&](int64_t p, int thread) {
    std::vector<float>& scratch = rows[static_cast<size_t>(thread)];
    scratch.resize(static_cast<size_t>(kPanel * linear.inputs));
    stacked.read(p * kPanel, kPanel, scratch.data());
    float* panel = linear.panels.data() + p * kPanel * linear.inputs;
    for (int64_t k = 0; k < linear.inputs; ++k)
      for (int64_t n = 0; n < kPanel; ++n)
        panel[k * kPanel + n] = scratch[static_cast<size_t>(n * linear.inputs + k)];
  });
  return linear;
}

void apply(const PackedLinear& linear, const Kernels& kernels, ThreadPool& pool, const float* x,
           int64_t x_stride, int64_t rows, float* y, int64_t y_stride) {
  const int64_t panels = round_up_to_panel(linear.outputs) / kPanel;
  // Few rows take several panels at once; many rows make one panel enough work for a task.
  const int64_t per_task = std::max<int64_t>(kernels.panels_at_once, rows >= 16 ? 1 : rows >= 3 ? 2 : 4);
  pool.run((panels + per_task - 1) / per_task, [&](int64_t task, int) {
    const int64_t first = task * per_task;
    const int64_t count = std::min(per_task, panels - first);
    std::array<const float*, kRowBlock> a;
    std::array<float*, kRowBlock> c;
    for (int64_t k = 0; k < linear.inputs; k += kDepthBlock) {
      const int64_t depth = std::min(kDepthBlock, linear.inputs - k);
      const float* b = linear.panels.data() + first * kPanel * linear.inputs + k * kPanel;
      for (int64_t row = 0; row < rows; row += kRowBlock) {
        const int64_t block = std::min(kRowBlock, rows - row);
        for (int64_t i = 0; i < block; ++i) {
          a[static_cast<size_t>(i)] = x + (row + i) * x_stride + k;
          c[static_cast<size_t>(i)] = y + (row + i) * y_stride + first * kPanel;
        }
        kernels.multiply(a.data(), c.data(), block, b, kPanel, kPanel * linear.inputs, depth, count, k > 0);
      }
    }
  });
}

}  // namespace sheaf

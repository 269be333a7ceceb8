#include <algorithm>
#include <cstddef>

#include "cpu/reference/ops.h"

namespace sheaf::reference {

Linear read_linear(const Matrix& weight, const Matrix& bias) {
  Linear linear;
  linear.inputs = weight.cols;
  linear.outputs = weight.rows;
  linear.weight.resize(static_cast<size_t>(weight.rows * weight.cols));
  std::vector<float> row(static_cast<size_t>(weight.cols));
  for (int64_t n = 0; n < weight.rows; ++n) {
    weight.read(n, 1, row.data());
    for (int64_t k = 0; k < weight.cols; ++k)
      linear.weight[static_cast<size_t>(k * weight.rows + n)] = row[static_cast<size_t>(k)];
  }
  if (!bias.empty()) linear.bias = bias.read_all();
  return linear;
}

void apply(const Linear& linear, std::span<const float> x, std::span<float> y) {
  const auto outputs = static_cast<size_t>(linear.outputs);
  std::fill(y.begin(), y.end(), 0.0f);
  for (size_t k = 0; k < static_cast<size_t>(linear.inputs); ++k) {
    const float* weight = linear.weight.data() + k * outputs;
    for (size_t n = 0; n < outputs; ++n) y[n] += x[k] * weight[n];
  }
  for (size_t n = 0; n < linear.bias.size(); ++n) y[n] += linear.bias[n];
}

}  // namespace sheaf::reference

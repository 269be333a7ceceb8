#include <cmath>
#include <cstddef>
#include <limits>

#include "cpu/reference/ops.h"

namespace sheaf::reference {

void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, std::span<float> out) {
  float squares = 0;
  for (const float value : x) squares += value * value;
  // Squares that overflow would leave zeros, which look like any other numbers.
  const float scale = std::isfinite(squares) ? 1.0f / std::sqrt(squares / static_cast<float>(x.size()) + eps)
                                             : std::numeric_limits<float>::quiet_NaN();
  for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] * scale * weight[i];
}

}  // namespace sheaf::reference

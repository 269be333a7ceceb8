#include <cmath>
#include <cstddef>

#include "cpu/reference/ops.h"

namespace sheaf::reference {

void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, std::span<float> out) {
  float squares = 0;
  for (const float value : x) squares += value * value;
  const float scale = 1.0f / std::sqrt(squares / static_cast<float>(x.size()) + eps);
  for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] * scale * weight[i];
}

}  // namespace sheaf::reference

#include <cmath>
#include <cstddef>

#include "cpu/reference/ops.h"

namespace sheaf::reference {

void gated_silu(std::span<const float> gate, std::span<const float> up, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
}

}  // namespace sheaf::reference

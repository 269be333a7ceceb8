#include <cstddef>

#include "cpu/reference/ops.h"
#include "cpu/reference/rope_angles.h"

namespace sheaf::reference {

void rotate(const ModelConfig& config, int32_t position, std::span<float> heads) {
  const auto head_dim = static_cast<size_t>(config.head_dim);
  const auto half = static_cast<size_t>(config.rotary_dim / 2);
  for (size_t i = 0; i < half; ++i) {
    const auto [cosine, sine] = rope_angle(config, position, static_cast<int32_t>(i));
    for (size_t head = 0; head < heads.size(); head += head_dim) {
      const float first = heads[head + i];
      const float second = heads[head + i + half];
      heads[head + i] = first * cosine - second * sine;
      heads[head + i + half] = second * cosine + first * sine;
    }
  }
}

}  // namespace sheaf::reference

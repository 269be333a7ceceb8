#pragma once
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/model/config.h"

namespace sheaf {

/// Cosine and sine of rotary pair `i` at `position`. The angle is an fp32 product, as the models were trained
/// and as Hugging Face computes it; far into a context a more exact angle would be a different one.
inline std::pair<float, float> rope_angle(const ModelConfig& config, int32_t position, int32_t i) {
  const float angle = static_cast<float>(position) * config.rope_freqs[static_cast<size_t>(i)];
  const auto exact = static_cast<double>(angle);
  return {static_cast<float>(std::cos(exact)) * config.rope_scale,
          static_cast<float>(std::sin(exact)) * config.rope_scale};
}

}  // namespace sheaf

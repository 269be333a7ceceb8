#pragma once
#include <cstdint>

namespace sheaf {

/// Rotates the first `size` values of a head. angles: `size` / 2 cosines, then as many sines.
inline void rotate(const float* angles, int32_t size, float* head) {
  const int32_t half = size / 2;
  for (int32_t i = 0; i < half; ++i) {
    const float first = head[i];
    const float second = head[i + half];
    head[i] = first * angles[i] - second * angles[half + i];
    head[i + half] = second * angles[i] + first * angles[half + i];
  }
}

}  // namespace sheaf

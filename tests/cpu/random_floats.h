#pragma once
#include <random>
#include <vector>

namespace sheaf {

/// Normally distributed.
inline std::vector<float> random_floats(size_t count, unsigned seed, float spread = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace sheaf

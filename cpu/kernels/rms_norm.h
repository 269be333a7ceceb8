#pragma once
#include <cmath>
#include <limits>

#include "cpu/kernels/vector.h"

/// Two passes over a row that lies in the first cache; under 1 % of a step.
namespace sheaf {
namespace {

void rms_norm(const float* x, const float* weight, int64_t n, float eps, float* out) {
  Vec sums[kPerPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { sums[v] = Vec{}; });
  const auto add_squares = [&](const float* from) __attribute__((always_inline)) {
    unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) {
      const Vec value = load(from + kLanes * v);
      sums[v] = fma(value, value, sums[v]);
    });
  };
  int64_t i = 0;
  for (; i + kPanel <= n; i += kPanel) add_squares(x + i);
  if (i < n) {
    float rest[kPanel] = {};
    for (int64_t j = i; j < n; ++j) rest[j - i] = x[j];
    add_squares(rest);
  }
  float lanes[kPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { store(lanes + kLanes * v, sums[v]); });
  const float squares = sum_lanes(lanes);
  // As reference::rms_norm: squares that overflow would leave zeros, which look like any other numbers.
  const float scale = squares < std::numeric_limits<float>::infinity()
                          ? 1.0f / std::sqrt(squares / static_cast<float>(n) + eps)
                          : std::numeric_limits<float>::quiet_NaN();
  for (int64_t j = 0; j < n; ++j) out[j] = x[j] * scale * weight[j];
}

}  // namespace
}  // namespace sheaf

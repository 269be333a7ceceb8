#pragma once
#include <limits>

#include "cpu/kernels/vector.h"

/// exp(score - highest) in place and the sum. One pass for the highest, one for the rest: about 12 vector
/// operations a vector, against 4 · head_dim for its score and its value. Score j always adds to lane j % 16,
/// so the sum depends on the row's scores alone and not on the spans they came from.
namespace sheaf {
namespace {

/// The highest of n scores. Those up to the end of the panel become minus infinity.
float highest_score(float* scores, int64_t n) {
  const int64_t padded = round_up_to_panel(n);
  for (int64_t i = n; i < padded; ++i) scores[i] = -std::numeric_limits<float>::infinity();
  Vec high[kPerPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { high[v] = load(scores + kLanes * v); });
  for (int64_t i = kPanel; i < padded; i += kPanel)
    unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) {
      high[v] = larger(load(scores + i + kLanes * v), high[v]);
    });
  float lanes[kPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { store(lanes + kLanes * v, high[v]); });
  float highest = lanes[0];
  for (int i = 1; i < kPanel; ++i) highest = lanes[i] > highest ? lanes[i] : highest;
  return highest;
}

float softmax(float* scores, int64_t n) {
  if (n == 0) return 0;
  const int64_t padded = round_up_to_panel(n);
  const Vec shift = broadcast(highest_score(scores, n));
  Vec sums[kPerPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { sums[v] = Vec{}; });
  for (int64_t i = 0; i < padded; i += kPanel)
    unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) {
      const Vec value = exp(load(scores + i + kLanes * v) - shift);
      store(scores + i + kLanes * v, value);
      sums[v] = sums[v] + value;
    });
  float lanes[kPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { store(lanes + kLanes * v, sums[v]); });
  return sum_lanes(lanes);
}

}  // namespace
}  // namespace sheaf

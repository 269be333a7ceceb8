#pragma once
#include <cstring>
#include <limits>

#include "cpu/kernels/bytes.h"
#include "cpu/kernels/vector.h"

/// The softmax of a row as whole numbers of two planes. Two passes over a row that lies in the second cache:
/// the highest, and 2^x with the sum and rounding; about 22 vector operations a vector, against 6 · head_dim
/// for its score and its value. As in softmax(), score j always adds to lane j % 16.
namespace sheaf {
namespace {

/// Replaces scores by the exponents of 2 that make their weights, and returns the highest. Those up to the
/// end of the panel become minus infinity.
float to_exponents(float* scores, const float* log_scales, int64_t n) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  const Vec log2_e = broadcast(1.44269504f);
  const int64_t padded = round_up_to_panel(n);
  for (int64_t i = n; i < padded; ++i) scores[i] = kLowest;
  Vec high[kPerPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { high[v] = broadcast(kLowest); });
  for (int64_t i = 0; i < padded; i += kPanel)
    unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) {
      const int64_t at = i + kLanes * v;
      const Vec exponent = (load(scores + at) + load(log_scales + at)) * log2_e;
      store(scores + at, exponent);
      high[v] = at_least(high[v], exponent);
    });
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { high[0] = at_least(high[0], high[v]); });
  float lanes[kLanes];
  store(lanes, high[0]);
  float highest = lanes[0];
  for (int i = 1; i < kLanes; ++i) highest = lanes[i] > highest ? lanes[i] : highest;
  return highest;
}

/// A panel of whole numbers as bytes of two planes.
[[gnu::always_inline]] inline void put_bytes(const Vec (&numbers)[kPerPanel], uint8_t flip, int8_t* high,
                                             int8_t* low) {
  Ints quads[4];
  std::memcpy(quads, numbers, sizeof quads);
  const Bytes upper = high_bytes(quads[0], quads[1], quads[2], quads[3]) ^ static_cast<int8_t>(flip);
  const Bytes lower = low_bytes(quads[0], quads[1], quads[2], quads[3]) ^ static_cast<int8_t>(flip);
  std::memcpy(high, &upper, sizeof upper);
  std::memcpy(low, &lower, sizeof lower);
}

float weigh(float* scores, const float* log_scales, const float* inverse_scales, int64_t n, uint8_t flip,
            int8_t* high, int8_t* low) {
  if (n == 0) return 0;
  constexpr float kMostExponent = 14.9886847f;  // 2^ this is kMostWeight
  // From here on, the sum of both would be rounded so far that a weight could exceed kMostWeight.
  constexpr float kLargeExponent = 65536.0f;
  float highest = to_exponents(scores, log_scales, n);
  if (highest >= kLargeExponent || highest <= -kLargeExponent) {
    for (int64_t i = 0; i < round_up_to_panel(n); ++i) scores[i] -= highest;
    highest = 0;
  }
  const Vec shift = broadcast(highest - kMostExponent);
  const Vec least = broadcast(-100.0f);      // next to nothing
  const Vec whole = broadcast(12582912.0f);  // as in exp2()
  Vec sums[kPerPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { sums[v] = Vec{}; });
  for (int64_t i = 0; i < n; i += kPanel) {
    Vec numbers[kPerPanel];  // in the low bits, as bytes.h has them
    unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) {
      const int64_t at = i + kLanes * v;
      const Vec weight = exp2<4>(at_least(least, load(scores + at) - shift));
      sums[v] = fma(weight, load(inverse_scales + at), sums[v]);
      numbers[v] = weight + whole;
    });
    put_bytes(numbers, flip, high + i, low + i);
  }
  float lanes[kPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { store(lanes + kLanes * v, sums[v]); });
  return sum_lanes(lanes) / Kernels::kMostWeight;
}

}  // namespace
}  // namespace sheaf

#pragma once
#include <cstring>
#include <limits>

#include "cpu/kernels/bytes.h"
#include "cpu/kernels/vector.h"

/// The softmax of a row as whole numbers of two planes. Two passes over a row that lies in the second cache:
/// the highest, and e^x with the sum and rounding; about 30 vector operations a vector, against 6 · head_dim
/// for its score and its value. As in softmax(), score j always adds to lane j % 16.
namespace sheaf {
namespace {

/// e^x for x <= 0 to about 3e-6 of itself; everything below -80 counts as -80.
[[gnu::always_inline]] inline Vec rough_exp(Vec x) {
  constexpr float kRound = 12582912.0f;  // 1.5 · 2²³: adding it rounds to an integer, left in the low bits
  const Vec lowest = broadcast(-80.0f);
  const Vec log2_e = broadcast(1.44269504f);
  x = x < lowest ? lowest : x;
  const Vec shifted = fma(x, log2_e, broadcast(kRound));
  const Vec f = fma(x, log2_e, broadcast(kRound) - shifted);
  Vec p = broadcast(1.3333558e-3f);
  p = fma(p, f, broadcast(9.6181291e-3f));
  p = fma(p, f, broadcast(5.5504109e-2f));
  p = fma(p, f, broadcast(2.4022651e-1f));
  p = fma(p, f, broadcast(6.9314718e-1f));
  p = fma(p, f, broadcast(1.0f));
  IntVec bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127) << 23;
  Vec power;
  std::memcpy(&power, &bits, sizeof power);
  return p * power;
}

/// The highest score + log_scale. Scores up to the end of the panel become minus infinity.
float highest_sum(float* scores, const float* log_scales, int64_t n) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  const int64_t padded = round_up_to_panel(n);
  for (int64_t i = n; i < padded; ++i) scores[i] = kLowest;
  Vec high[kPerPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { high[v] = broadcast(kLowest); });
  for (int64_t i = 0; i < padded; i += kPanel)
    unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) {
      high[v] = larger(load(scores + i + kLanes * v) + load(log_scales + i + kLanes * v), high[v]);
    });
  float lanes[kPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { store(lanes + kLanes * v, high[v]); });
  float highest = lanes[0];
  for (int i = 1; i < kPanel; ++i) highest = lanes[i] > highest ? lanes[i] : highest;
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
  const Vec shift = broadcast(highest_sum(scores, log_scales, n));
  const Vec most = broadcast(Kernels::kMostWeight), whole = broadcast(12582912.0f);
  Vec sums[kPerPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { sums[v] = Vec{}; });
  for (int64_t i = 0; i < n; i += kPanel) {
    Vec numbers[kPerPanel];  // in the low bits, as bytes.h has them
    unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) {
      const int64_t at = i + kLanes * v;
      const Vec weight = rough_exp(load(scores + at) + load(log_scales + at) - shift);
      sums[v] = fma(weight, load(inverse_scales + at), sums[v]);
      numbers[v] = fma(weight, most, whole);
    });
    put_bytes(numbers, flip, high + i, low + i);
  }
  float lanes[kPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { store(lanes + kLanes * v, sums[v]); });
  return sum_lanes(lanes);
}

}  // namespace
}  // namespace sheaf

#pragma once
#include <bit>
#include <cmath>

#include "cpu/kernels/bytes.h"
#include "cpu/kernels/softmax.h"
#include "cpu/kernels/vector.h"

/// The softmax of a row as whole numbers of two planes. Three passes over a row that lies in the second
/// cache: the highest, e^x with the sum and the largest product, and rounding; about 30 vector operations a
/// vector, against 6 · head_dim for its score and its value. As in softmax(), score j always adds to lane j
/// % 16.
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

/// Sixteen products as bytes of two planes.
[[gnu::always_inline]] inline void round_panel(const float* products, float inverse, uint8_t flip,
                                               int8_t* high, int8_t* low) {
  const auto* quads = reinterpret_cast<const Floats*>(products);
  const Ints a = rounded(quads[0], inverse), b = rounded(quads[1], inverse), c = rounded(quads[2], inverse),
             d = rounded(quads[3], inverse);
  const Bytes upper = high_bytes(a, b, c, d) ^ static_cast<int8_t>(flip);
  const Bytes lower = low_bytes(a, b, c, d) ^ static_cast<int8_t>(flip);
  std::memcpy(high, &upper, sizeof upper);
  std::memcpy(low, &lower, sizeof lower);
}

Weights weigh(float* scores, const float* value_scales, int64_t n, uint8_t flip, int8_t* high, int8_t* low) {
  if (n == 0) return {};
  const int64_t padded = round_up_to_panel(n);
  const Vec shift = broadcast(highest_score(scores, n));
  Vec sums[kPerPanel];
  IntVec tops[kPerPanel];  // as bits, which order numbers from 0 on as they do, and NaN last
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) {
    sums[v] = Vec{};
    tops[v] = IntVec{};
  });
  for (int64_t i = 0; i < padded; i += kPanel)
    unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) {
      const Vec weight = rough_exp(load(scores + i + kLanes * v) - shift);
      const Vec product = weight * load(value_scales + i + kLanes * v);
      store(scores + i + kLanes * v, product);
      sums[v] = sums[v] + weight;
      IntVec bits;
      std::memcpy(&bits, &product, sizeof bits);
      bits &= 0x7fffffff;  // a NaN may have a sign
      tops[v] = bits > tops[v] ? bits : tops[v];
    });
  float lanes[kPanel];
  int32_t top_lanes[kPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) {
    store(lanes + kLanes * v, sums[v]);
    std::memcpy(top_lanes + kLanes * v, &tops[v], sizeof(IntVec));
  });
  int32_t top_bits = 0;
  for (const int32_t bits : top_lanes) top_bits = bits > top_bits ? bits : top_bits;
  const auto top = std::bit_cast<float>(top_bits);
  constexpr float kLevels = 127.0f * 256;
  const float inverse = top > 0 && std::isfinite(kLevels / top) ? kLevels / top : 0.0f;
  for (int64_t i = 0; i < padded; i += kPanel) round_panel(scores + i, inverse, flip, high + i, low + i);
  return {sum_lanes(lanes), top / kLevels};
}

}  // namespace
}  // namespace sheaf

#pragma once
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/kernels/bytes.h"
#include "cpu/kernels/vector.h"

/// What the quick backend does to rows between products, for the instruction set that the including file is
/// compiled for.
namespace sheaf {
namespace {

/// gate · sigmoid(inner(gate)) · up, about 20 vector operations a vector against 4 · hidden / lanes for the
/// products that made it. `power` is -log2(e) · inner.
template <class Power>
[[gnu::always_inline]] inline void gated(const float* both, int64_t stride, int64_t rows, float* out,
                                         int64_t out_stride, Power&& power) {
  const Vec most = broadcast(126.0f), least = broadcast(-126.0f);
  for (int64_t row = 0; row < rows; ++row, both += stride, out += out_stride) {
    Vec result[kPerPanel];  // stored at the end, so that vectors do not wait for each other
    unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) {
      const Vec gate = load(both + kLanes * v), up = load(both + kPanel + kLanes * v);
      result[v] = gate / (broadcast(1.0f) + exp2<5>(at_most(most, at_least(least, power(gate))))) * up;
    });
    unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { store(out + kLanes * v, result[v]); });
  }
}

void gated_silu(const float* both, int64_t stride, int64_t rows, float* out, int64_t out_stride) {
  const Vec minus_log2_e = broadcast(-1.44269504f);
  gated(
      both, stride, rows, out,
      out_stride, [&](Vec gate) __attribute__((always_inline)) { return gate * minus_log2_e; });
}

/// GELU by tanh: (1 + tanh(u)) / 2 is the sigmoid of 2u, and u = sqrt(2/pi) · (x + 0.044715 x³).
void gated_gelu(const float* both, int64_t stride, int64_t rows, float* out, int64_t out_stride) {
  const Vec linear = broadcast(-2.30220819f), cubic = broadcast(-0.102943240f);
  gated(
      both, stride, rows, out, out_stride, [&](Vec gate) __attribute__((always_inline)) {
        return gate * fma(gate * gate, cubic, linear);
      });
}

/// As 1 - 2 / (1 + e^2x), which near 0 has too few digits: there by its series, to 1e-7 of itself.
void soft_cap(float* x, int64_t n, float cap) {
  const Vec inverse = broadcast(1 / cap), by = broadcast(cap), one = broadcast(1.0f);
  for (int64_t i = 0; i < n; i += kLanes) {
    const Vec t = load(x + i) * inverse, square = t * t;
    const Vec series =
        t * fma(square,
                fma(square, fma(square, broadcast(-17.0f / 315), broadcast(2.0f / 15)), broadcast(-1.0f / 3)),
                one);
    const Vec power = at_most(broadcast(126.0f), at_least(broadcast(-126.0f), t * broadcast(2.88539008f)));
    const Vec whole = one - broadcast(2.0f) / (one + exp2<5>(power));
    store(x + i, (square < broadcast(0.0625f) ? series : whole) * by);
  }
}

/// Two passes over a row that lies in the first cache; under 1 % of a step.
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
  const float squares = sum_lanes(sums);
  // As reference::rms_norm: squares that overflow would leave zeros, which look like any other numbers.
  const float scale = squares < std::numeric_limits<float>::infinity()
                          ? 1.0f / std::sqrt(squares / static_cast<float>(n) + eps)
                          : std::numeric_limits<float>::quiet_NaN();
  for (int64_t j = 0; j < n; ++j) out[j] = x[j] * scale * weight[j];
}

/// Activation::clamped.
void gated_clamped(const float* both, int64_t stride, int64_t rows, float* out, int64_t out_stride) {
  const Vec most = broadcast(kGateClamp), least = broadcast(-kGateClamp), one = broadcast(1.0f);
  const Vec power = broadcast(-1.44269504f * kGateSlope), highest = broadcast(126.0f);
  for (int64_t row = 0; row < rows; ++row, both += stride, out += out_stride) {
    Vec result[kPerPanel];
    unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) {
      const Vec gate = at_most(most, load(both + kLanes * v));
      const Vec up = at_most(most, at_least(least, load(both + kPanel + kLanes * v)));
      result[v] = gate / (one + exp2<5>(at_most(highest, gate * power))) * (up + one);
    });
    unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { store(out + kLanes * v, result[v]); });
  }
}

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

/// exp(score - highest) in place and the sum. One pass for the highest, one for the rest: about 12 vector
/// operations a vector, against 4 · head_dim for its score and its value. Score j always adds to lane j % 16,
/// so the sum depends on the row's scores alone and not on the spans they came from.
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
  return sum_lanes(sums);
}

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

/// The softmax of a row as whole numbers of two planes. Two passes over a row that lies in the second cache:
/// the highest, and 2^x with the sum and rounding; about 22 vector operations a vector, against 6 · head_dim
/// for its score and its value. As in softmax(), score j always adds to lane j % 16.
float weigh(float* scores, const float* log_scales, const float* inverse_scales, int64_t n, uint8_t flip,
            int8_t* high, int8_t* low, float sink) {
  if (n == 0) return 0;
  constexpr float kMostExponent = 14.9886847f;  // 2^ this is kMostWeight
  // From here on, the sum of both would be rounded so far that a weight could exceed kMostWeight.
  constexpr float kLargeExponent = 65536.0f;
  float highest = to_exponents(scores, log_scales, n);
  const float beyond = std::exp2(sink * 1.44269504f - highest);  // 0 where there is no sink
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
  return sum_lanes(sums) / Kernels::kMostWeight + beyond;
}

[[maybe_unused]] Kernels make_kernels(const MultiplyKernel& product) {
  return {kInstructionSet, product.panels_at_once, product.multiply, softmax, weigh, rms_norm, gated_silu,
          gated_gelu,      gated_clamped,          soft_cap};
}

}  // namespace
}  // namespace sheaf

#pragma once
#include <cstdint>
#include <cstring>
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/unroll.h"

/// Vectors of the instruction set that the including file is compiled for. Everything here is in an unnamed
/// namespace: the files are compiled with different flags, and the linker must not mix their copies.
namespace sheaf {
namespace {

#if defined(__aarch64__)
using Vec = float32x4_t;
constexpr const char* kInstructionSet = "NEON";
constexpr int kAccumulators = 20;  // vector registers that a multiply may keep sums in
#elif defined(__AVX512F__)
using Vec = __m512;
constexpr const char* kInstructionSet = "AVX-512";
constexpr int kAccumulators = 20;
#elif defined(__AVX2__)
using Vec = __m256;
constexpr const char* kInstructionSet = "AVX2";
constexpr int kAccumulators = 12;
#elif defined(__x86_64__)
using Vec = __m128;
constexpr const char* kInstructionSet = "SSE2";
constexpr int kAccumulators = 8;
#else
using Vec = float __attribute__((vector_size(16)));
constexpr const char* kInstructionSet = "scalar";
constexpr int kAccumulators = 8;
#endif

constexpr int kLanes = sizeof(Vec) / sizeof(float);
constexpr int kPerPanel = static_cast<int>(kPanel) / kLanes;  // vectors that make up a panel's width
using IntVec = int32_t __attribute__((vector_size(sizeof(Vec))));

// An unaligned vector in memory. Through memcpy the compiler would keep the multiply's sums on the stack.
using InMemory __attribute__((vector_size(sizeof(Vec)), aligned(alignof(float)), may_alias)) = float;

[[gnu::always_inline]] inline Vec load(const float* from) {
  return *reinterpret_cast<const InMemory*>(from);
}

[[gnu::always_inline]] inline void store(float* to, Vec v) {
  *reinterpret_cast<InMemory*>(to) = v;
}

[[gnu::always_inline]] inline Vec broadcast(float value) {
#if defined(__aarch64__)
  return vdupq_n_f32(value);
#elif defined(__AVX512F__)
  return _mm512_set1_ps(value);
#elif defined(__AVX2__)
  return _mm256_set1_ps(value);
#else
  return Vec{value, value, value, value};
#endif
}

/// a · b + c, rounded once (twice on x86 without FMA, where everything else is the same).
[[gnu::always_inline]] inline Vec fma(Vec a, Vec b, Vec c) {
#if defined(__aarch64__)
  return vfmaq_f32(c, a, b);
#elif defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

/// The larger of a and b; b where a is NaN.
[[gnu::always_inline]] inline Vec larger(Vec a, Vec b) {
  return a > b ? a : b;
}

/// x, but at least `low` or at most `high`. NaN stays.
[[gnu::always_inline]] inline Vec at_least(Vec low, Vec x) {
#if defined(__aarch64__)
  return vmaxq_f32(low, x);
#else
  return x < low ? low : x;
#endif
}
[[gnu::always_inline]] inline Vec at_most(Vec high, Vec x) {
#if defined(__aarch64__)
  return vminq_f32(high, x);
#else
  return x > high ? high : x;
#endif
}

/// The sum of a panel's 16 lanes, always in the same order.
[[gnu::always_inline]] inline float sum_lanes(const Vec (&lanes)[kPerPanel]) {
  float sums[kPanel];
  unroll<kPerPanel>([&](auto v) __attribute__((always_inline)) { store(sums + kLanes * v, lanes[v]); });
  for (int width = kPanel / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  return sums[0];
}

/// 2^x for |x| <= 126, to 3e-6 of itself with degree 4 and 2e-7 with degree 5. The coefficients are those
/// whose largest error is least; in pairs, so that few steps wait for each other.
template <int Degree>
[[gnu::always_inline]] inline Vec exp2(Vec x) {
  static_assert(Degree == 4 || Degree == 5);
  constexpr float kFour[] = {0.999999261f, 0.693121815f, 0.240247448f, 0.0559178603f, 0.00957010191f};
  constexpr float kFive[] = {1.00000007f,   0.693146967f,   0.240221197f,
                             0.0555071327f, 0.00967554133f, 0.0013276472f};
  const auto c = [&](int i) __attribute__((always_inline)) {
    return broadcast(Degree == 4 ? kFour[i] : kFive[i]);
  };
  const Vec round =
      broadcast(12582912.0f);  // 1.5 · 2²³: adding it rounds to an integer, left in the low bits
  const Vec shifted = x + round;
  const Vec f = x - (shifted - round), square = f * f;
  Vec fourth = c(4);
  if constexpr (Degree == 5) fourth = fma(f, c(5), fourth);
  const Vec p = fma(fma(fourth, square, fma(f, c(3), c(2))), square, fma(f, c(1), c(0)));
  IntVec bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127) << 23;
  Vec power;
  std::memcpy(&power, &bits, sizeof power);
  return p * power;
}

/// e^x to about 2 ulp, 0 below -87.3, capped at x = 88.
[[gnu::always_inline]] inline Vec exp(Vec x) {
  constexpr float kRound = 12582912.0f;  // 1.5 · 2²³: adding it rounds to an integer, left in the low bits
  const Vec highest = broadcast(88.0f);
  const Vec lowest = broadcast(-87.3f);
  const Vec bounded = x > highest ? highest : (x < lowest ? lowest : x);
  const Vec shifted = fma(bounded, broadcast(1.44269504f), broadcast(kRound));
  const Vec n = shifted - broadcast(kRound);
  Vec r = fma(n, broadcast(-0.693359375f), bounded);
  r = fma(n, broadcast(2.12194440e-4f), r);
  Vec p = broadcast(1.9875691500e-4f);
  p = fma(p, r, broadcast(1.3981999507e-3f));
  p = fma(p, r, broadcast(8.3334519073e-3f));
  p = fma(p, r, broadcast(4.1665795894e-2f));
  p = fma(p, r, broadcast(1.6666665459e-1f));
  p = fma(p, r, broadcast(5.0000001201e-1f));
  p = fma(p, r * r, r) + broadcast(1.0f);
  IntVec bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127) << 23;
  Vec power;
  std::memcpy(&power, &bits, sizeof power);
  const Vec zero{};
  return x < lowest ? zero : p * power;
}

}  // namespace
}  // namespace sheaf

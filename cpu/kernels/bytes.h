#pragma once
#include <cstdint>

/// From floats to bytes of whole numbers.
namespace sheaf {
namespace {

// Vectors of 16 bytes, the width that every 64-bit machine has; the compiler keeps wider ones in memory.
using Floats __attribute__((vector_size(16), aligned(4), may_alias)) = float;
using Ints __attribute__((vector_size(16))) = int32_t;
using Shorts __attribute__((vector_size(16))) = int16_t;
using Bytes __attribute__((vector_size(16))) = int8_t;

/// The lower halves of eight numbers.
[[gnu::always_inline]] inline Shorts low_halves(Ints a, Ints b) {
#ifdef __clang__
  return __builtin_shufflevector(reinterpret_cast<Shorts>(a), reinterpret_cast<Shorts>(b), 0, 2, 4, 6, 8, 10,
                                 12, 14);
#else
  return __builtin_shuffle(reinterpret_cast<Shorts>(a), reinterpret_cast<Shorts>(b),
                           Shorts{0, 2, 4, 6, 8, 10, 12, 14});
#endif
}
[[gnu::always_inline]] inline Bytes low_halves(Shorts a, Shorts b) {
#ifdef __clang__
  return __builtin_shufflevector(reinterpret_cast<Bytes>(a), reinterpret_cast<Bytes>(b), 0, 2, 4, 6, 8, 10,
                                 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#else
  return __builtin_shuffle(reinterpret_cast<Bytes>(a), reinterpret_cast<Bytes>(b),
                           Bytes{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30});
#endif
}

/// The low bytes of sixteen numbers.
[[gnu::always_inline]] inline Bytes low_bytes(Ints a, Ints b, Ints c, Ints d) {
  return low_halves(low_halves(a, b), low_halves(c, d));
}

/// The bytes above them, after rounding to the nearest; numbers of up to ±32,639.
[[gnu::always_inline]] inline Bytes high_bytes(Ints a, Ints b, Ints c, Ints d) {
  return low_halves((low_halves(a, b) + 128) >> 8, (low_halves(c, d) + 128) >> 8);
}

/// values · by, rounded to the nearest whole number: adding 1.5 · 2²³ leaves it in the low 22 bits.
[[gnu::always_inline]] inline Ints rounded(Floats values, float by) {
  return reinterpret_cast<Ints>(values * by + 12582912.0f);
}

}  // namespace
}  // namespace sheaf

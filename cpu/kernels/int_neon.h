#pragma once
#include <arm_neon.h>

#include "cpu/kernels/int_tiles.h"

/// From four sums to where they go, for all NEON kernels.
namespace sheaf {
namespace {

/// Inputs of two planes whose products, the high ones times 256, fit 32 bits: 256 · 127² + 2 · 127 · 128
/// each. As whole numbers they come together in fewer cycles. Both ways round once.
constexpr int64_t kInputsIn32Bits = 512;

[[gnu::always_inline]] inline float32x4_t to_floats_in_32_bits(int32x4_t high, int32x4_t low) {
  return vcvtq_f32_s32(vaddq_s32(vshlq_n_s32(high, 8), low));
}

template <int Planes>
[[gnu::always_inline]] inline float32x4_t to_floats(int32x4_t high, int32x4_t low) {
  if constexpr (Planes == 1) return vcvtq_f32_s32(high);
  return vfmaq_n_f32(vcvtq_f32_s32(low), vcvtq_f32_s32(high), 256.0f);
}

/// A row that sums go to. Its scale and its place are read once: no compiler knows that what is stored there
/// does not change them.
template <int Planes>
struct ScaledRow {
  float scale;
  float* c;

  [[gnu::always_inline]] ScaledRow(const Scaled& out, int64_t row)
      : scale(out.row_scales[row] * (Planes == 2 ? 256.0f : 1.0f)), c(out.c[row]) {}
  [[gnu::always_inline]] void put(int64_t column, float32x4_t column_scales, float32x4_t sums) const {
    vst1q_f32(c + column, vmulq_f32(sums, vmulq_n_f32(column_scales, scale)));
  }
};

template <int Planes>
[[gnu::always_inline]] inline void put(const Scaled& out, int64_t row, int64_t column, int32x4_t high,
                                       int32x4_t low) {
  ScaledRow<Planes>(out, row).put(column, vld1q_f32(out.column_scales + column),
                                  to_floats<Planes>(high, low));
}

template <int Planes>
[[gnu::always_inline]] inline void put(const Added& out, int64_t row, int64_t column, int32x4_t high,
                                       int32x4_t low) {
  int32_t* high_sums = out.sums[row] + Added::place(column, 0);
  int32_t* low_sums = out.sums[row] + Added::place(column, 1);
  vst1q_s32(high_sums, vaddq_s32(vld1q_s32(high_sums), high));
  vst1q_s32(low_sums, vaddq_s32(vld1q_s32(low_sums), low));
}

}  // namespace
}  // namespace sheaf

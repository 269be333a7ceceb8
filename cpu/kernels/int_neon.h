#pragma once
#include <arm_neon.h>

#include "cpu/kernels/int_tiles.h"

/// From four sums to where they go, for all NEON kernels.
namespace sheaf {
namespace {

template <int Planes>
[[gnu::always_inline]] inline float32x4_t to_floats(int32x4_t high, int32x4_t low) {
  if constexpr (Planes == 1) return vcvtq_f32_s32(high);
  return vfmaq_n_f32(vcvtq_f32_s32(low), vcvtq_f32_s32(high), 256.0f);
}

template <int Planes>
[[gnu::always_inline]] inline void put(const Scaled& out, int64_t row, int64_t column, float32x4_t sums) {
  const float row_scale = out.row_scales[row] * (Planes == 2 ? 256.0f : 1.0f);
  const float32x4_t scales = vmulq_n_f32(vld1q_f32(out.column_scales + column), row_scale);
  vst1q_f32(out.c[row] + column, vmulq_f32(sums, scales));
}

template <int Planes>
[[gnu::always_inline]] inline void put(const Scaled& out, int64_t row, int64_t column, int32x4_t high,
                                       int32x4_t low) {
  put<Planes>(out, row, column, to_floats<Planes>(high, low));
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

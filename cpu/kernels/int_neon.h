#pragma once
#include <arm_neon.h>

#include "cpu/kernels/int_tiles.h"

/// Where four sums of a row go, for all NEON kernels.
namespace sheaf {
namespace {

template <int Planes>
[[gnu::always_inline]] inline void put(const Scaled& out, int64_t row, int64_t column, int32x4_t high,
                                       int32x4_t low) {
  float32x4_t sum = vcvtq_f32_s32(high);
  if constexpr (Planes == 2)
    sum = vmulq_n_f32(vaddq_f32(vmulq_n_f32(sum, 256.0f), vcvtq_f32_s32(low)), 256.0f);
  const float32x4_t scales = vmulq_n_f32(vld1q_f32(out.column_scales + column), out.row_scales[row]);
  vst1q_f32(out.c[row] + column, vmulq_f32(sum, scales));
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

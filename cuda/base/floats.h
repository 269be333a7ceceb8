#pragma once
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace sheaf::cuda {

using bf16 = __nv_bfloat16;
/// Queries, keys, values and attention's weights: their errors go straight into scores, and they are never as
/// large as what only bf16 can hold (65,504 is the most; larger ones are cut to it). Same size and speed as
/// bf16, eight times as fine.
using f16 = __half;

using e4m3 = __nv_fp8_e4m3;

constexpr float kLargestE4m3 = 448;

/// Rows of e4m3 values with a scale each: what FP8 products read.
struct Fp8Rows {
  e4m3* values = nullptr;   ///< [rows, cols]
  float* scales = nullptr;  ///< [rows]
  float* blocks = nullptr;  ///< [rows, blocks of 128 columns], until align_rows()
};
/// Rows in bf16 and in e4m3, for readers of each kind.
struct BothRows {
  bf16* wide;  ///< [rows, cols]
  Fp8Rows narrow;
};
/// Columns whose scale is found together where no one sees a whole row.
constexpr int kFp8Block = 128;
constexpr int64_t fp8_blocks(int64_t cols) {
  return (cols + kFp8Block - 1) / kFp8Block;
}

struct Fp8Weight {
  const e4m3* values = nullptr;   ///< [n, k]
  const float* scales = nullptr;  ///< [n]
};

#ifdef __CUDACC__
/// What takes values whose largest is `most` to e4m3 (by the inverse) and back.
struct Fp8Scale {
  float scale, inverse;
  /// The largest becomes 448.
  static __device__ Fp8Scale fine(float most) {
    most = fmaxf(most, 1e-20f);
    return {most / kLargestE4m3, kLargestE4m3 / most};
  }
  /// A power of 16, the largest becoming more than 28: most blocks of a row have the same, and others can be
  /// brought to it without rounding again, but for the smallest values. E4M3 has 15 bits of range, so the
  /// four cost nothing.
  static __device__ Fp8Scale coarse(float most) {
    const int bits = __float_as_int(fmaxf(most, 1e-20f) * (1 / kLargestE4m3));
    const int up = ((bits + 0x7fffff) >> 23) - 127;      // the smallest power of 2 that is as large
    const int power = ((up + 3 + 128) >> 2 << 2) - 128;  // and of 16
    return {__int_as_float((127 + power) << 23), __int_as_float((127 - power) << 23)};
  }
};

/// Two values in 16 bits, the first in the low ones.
__device__ inline uint32_t pack_e4m3(float low, float high) {
  return __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, __NV_E4M3);
}
/// The two values of pack_e4m3().
__device__ inline float2 unpack_e4m3(uint32_t pair) {
  return __half22float2(__nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(pair), __NV_E4M3));
}
#endif

}  // namespace sheaf::cuda

#pragma once
// What several kernels need and CUDA C++ has no short word for.
#include <cmath>
#include <cstdint>

#include "cuda/base/floats.h"

namespace sheaf::cuda {

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}
__device__ inline float warp_most(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

__device__ inline float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float fast_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// What an fp16 can hold. NaN stays, as it does in pack_half(): fminf() and fmaxf() would make a number of
/// it.
__device__ inline float cut(float value) {
  return value < -65504.0f ? -65504.0f : value > 65504.0f ? 65504.0f : value;
}

/// A logit, or what no choice takes in the place of NaN.
__device__ inline float as_score(float logit) {
  return isnan(logit) ? -INFINITY : logit;
}

/// What an RMS norm multiplies by. Squares that overflow would leave zeros, which look like any other
/// numbers.
__device__ inline float norm_scale(float mean_square, float eps) {
  return mean_square < INFINITY ? rsqrtf(mean_square + eps) : NAN;
}

__device__ inline uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
/// The same as fp16, of numbers in [0, 1].
__device__ inline uint32_t pack_weights(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
/// The same of any numbers, cut to what it can hold.
__device__ inline uint32_t pack_half(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t pair;
  asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return pack_weights(cut(low), cut(high));
#endif
}

/// Eight values that lie on a multiple of 16 bytes.
__device__ inline void eight_at(const bf16* at, float (&values)[8]) {
  const uint4 bits = *reinterpret_cast<const uint4*>(at);
  const auto* pairs = reinterpret_cast<const __nv_bfloat162*>(&bits);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float2 pair = __bfloat1622float2(pairs[j]);
    values[2 * j] = pair.x;
    values[2 * j + 1] = pair.y;
  }
}
__device__ inline void eight_at(const float* at, float (&values)[8]) {
#pragma unroll
  for (int j = 0; j < 2; ++j)
    *reinterpret_cast<float4*>(values + 4 * j) = reinterpret_cast<const float4*>(at)[j];
}

// Copies from global to shared memory beside other work, and what matrix instructions read out of it: on
// every GPU from Ampere on.

/// Copies 16 bytes, or writes zeros where `valid` is false.
__device__ inline void copy16(void* to, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes));
}
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;");
}
template <int pending>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending));
}

/// Four 8 × 16-byte matrices of shared memory; each lane names one row.
__device__ inline void load4(uint32_t (&r)[4], const void* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(from)));
}

}  // namespace sheaf::cuda

#pragma once
#include "cuda/attention/hopper_memory.h"
#include "cuda/base/hopper.h"

/// The matrix products of a warpgroup of the Hopper kernel, by the numbers that they multiply.
namespace sheaf::cuda {
namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

template <class T>
struct AttentionProducts;

template <>
struct AttentionProducts<f16> {
  static constexpr int kDepth = 16;  // numbers that one product sums up

  template <int count>
  __device__ static void keys(float (&score)[count], uint64_t q, uint64_t k, bool add) {
    multiply_tiles(score, q, k, add);
  }
  template <int count>
  __device__ static void values(float (&out)[count], const uint32_t (&weights)[4], uint64_t v, bool add) {
    multiply_registers(out, weights, v, add);
  }
  /// A stage of `keys` values.
  template <int D>
  __device__ static uint64_t value_tile(const void* values, int keys) {
    return tile_descriptor(values, keys * 128);
  }
  /// In units of 16 bytes, from the values of one product to those of the next.
  template <int D>
  static constexpr int kValueStep = kDepth * 128 / 16;
  /// To their columns 128 and up.
  __device__ static constexpr int half_step(int keys) { return 2 * keys * 128 / 16; }

  /// The weights of product k.
  template <int count>
  __device__ static void pack(const float (&score)[count], int k, uint32_t (&weights)[4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j) weights[j] = pack_weights(score[k * 8 + 2 * j], score[k * 8 + 2 * j + 1]);
  }
};

template <>
struct AttentionProducts<e4m3> {
  static constexpr int kDepth = 32;

  template <int count>
  __device__ static void keys(float (&score)[count], uint64_t q, uint64_t k, bool add) {
    multiply_tiles_fp8(score, q, k, add);
  }
  template <int count>
  __device__ static void values(float (&out)[count], const uint32_t (&weights)[4], uint64_t v, bool add) {
    multiply_registers_fp8(out, weights, v, add);
  }
  template <int D>
  __device__ static uint64_t value_tile(const void* values, int) {
    return columns_descriptor(values, kPage * D);
  }
  template <int D>
  static constexpr int kValueStep = kDepth* D / 16;
  __device__ static constexpr int half_step(int) { return 128; }

  /// Of a page, a thread has the keys that NarrowKeys puts side by side.
  template <int count>
  __device__ static void pack(const float (&score)[count], int k, uint32_t (&weights)[4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int at = k * 16 + j / 2 * 8 + j % 2 * 2;
      weights[j] = pack_e4m3(score[at], score[at + 1]) | pack_e4m3(score[at + 4], score[at + 5]) << 16;
    }
  }
};
#endif

}  // namespace
}  // namespace sheaf::cuda

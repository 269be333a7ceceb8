#pragma once
#include <cstdint>
#include <cuda.h>
#include <cuda_runtime.h>
#include <type_traits>

#include "cuda/base/floats.h"
#include "cuda/base/fp8.h"

namespace sheaf::cuda {

/// The driver's function, found at run time so that the program starts on machines without a driver.
inline decltype(&cuTensorMapEncodeTiled) tensor_map_encoder() {
  static const auto function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                         &result) != cudaSuccess ||
        result != cudaDriverEntryPointSuccess)
      found = nullptr;
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  }();
  return function;
}

/// Boxes of 128 bytes (swizzled) of each of `box_rows` rows of a matrix [rows, cols] of bf16, e4m3 or
/// fp32.
template <class T>
bool matrix_map(const T* matrix, int64_t rows, int64_t cols, uint32_t box_rows, CUtensorMap& map) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, e4m3> || std::is_same_v<T, float>);
  constexpr auto type = std::is_same_v<T, bf16>   ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                        : std::is_same_v<T, e4m3> ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                                  : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(cols), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(cols) * sizeof(T)};
  const cuuint32_t box[2] = {128 / sizeof(T), box_rows};
  const cuuint32_t steps[2] = {1, 1};
  return tensor_map_encoder()(&map, type, 2, const_cast<T*>(matrix), sizes, strides, box, steps,
                              CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                              CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/// Multiprocessors of the current device where it is Hopper and `kernel` was compiled for it (sm_90a), else
/// 0.
template <class Kernel>
int hopper_multiprocessors(Kernel kernel) {
  int device = 0, major = 0, minor = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  // Compiled for anything else, the kernel is empty and needs next to no registers.
  cudaFuncAttributes attributes{};
  const bool compiled =
      cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess && attributes.numRegs >= 100;
  cudaGetLastError();
  return major == 9 && minor == 0 && compiled && tensor_map_encoder() ? count : 0;
}

}  // namespace sheaf::cuda

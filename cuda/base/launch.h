#pragma once
// What kernels need before they are launched: the device's abilities, shared memory, maps of tensors.
#include <array>
#include <cstdint>
#include <cuda.h>
#include <cuda_runtime.h>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "cuda/base/floats.h"

namespace sheaf::cuda {

/// Something that is found out, or done, once for each device: a kernel's attributes belong to a device. For
/// engines on several threads.
template <class Value>
class PerDevice {
 public:
  /// Of the current device.
  template <class Find>
  Value get(Find&& find) {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || device >= kMost)
      throw std::runtime_error("CUDA: no current device");
    Known& known = devices_[static_cast<size_t>(device)];
    std::call_once(known.once, [&] { known.value = find(); });
    return known.value;
  }

 private:
  static constexpr int kMost = 256;
  struct Known {
    std::once_flag once;
    Value value{};
  };
  std::array<Known, kMost> devices_;
};

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

/// A map of boxes of a tensor, `strides` in bytes between its outer dimensions. Fails, naming `what`, where
/// the driver refuses it.
template <int rank>
CUtensorMap tensor_map(CUtensorMapDataType type, const void* tensor, const cuuint64_t (&sizes)[rank],
                       const cuuint64_t (&strides)[rank - 1], const cuuint32_t (&box)[rank],
                       CUtensorMapSwizzle swizzle, const char* what) {
  constexpr cuuint32_t steps[] = {1, 1, 1};
  CUtensorMap map;
  if (tensor_map_encoder()(&map, type, rank, const_cast<void*>(tensor), sizes, strides, box, steps,
                           CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error(std::string("CUDA: the driver refuses a map of ") + what);
  return map;
}

/// Boxes of 128 bytes (swizzled) of each of `box_rows` rows of a matrix [rows, cols] of bf16, e4m3 or
/// fp32.
template <class T>
CUtensorMap matrix_map(const T* matrix, int64_t rows, int64_t cols, uint32_t box_rows) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, e4m3> || std::is_same_v<T, float>);
  constexpr auto type = std::is_same_v<T, bf16>   ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                        : std::is_same_v<T, e4m3> ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                                  : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  const auto width = static_cast<cuuint64_t>(cols);
  return tensor_map<2>(type, matrix, {width, static_cast<cuuint64_t>(rows)}, {width * sizeof(T)},
                       {128 / sizeof(T), box_rows}, CU_TENSOR_MAP_SWIZZLE_128B, "a matrix");
}

/// The compute capability of the current device, 90 of Hopper, where `kernel` was compiled for it; else 0.
template <class Kernel>
int capability_for(Kernel kernel) {
  int device = 0, major = 0, minor = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  // Compiled for anything less, the kernel is empty and needs next to no registers.
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess) {
    cudaGetLastError();  // only its own: a kernel that could not be launched must still be found
    return 0;
  }
  return attributes.numRegs >= 100 ? major * 10 + minor : 0;
}

/// Multiprocessors of the current device.
inline int device_multiprocessors() {
  int device = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}

/// Multiprocessors of the current device where it is Hopper and `kernel` was compiled for it (sm_90a), else
/// 0.
template <class Kernel>
int hopper_multiprocessors(Kernel kernel) {
  return capability_for(kernel) == 90 && tensor_map_encoder() ? device_multiprocessors() : 0;
}

/// Lets a kernel have so much dynamic shared memory, once for each device; false where it cannot.
template <class Kernel>
bool allow_shared(Kernel kernel, int bytes, PerDevice<cudaError_t>& ready) {
  return ready.get([&] {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  }) == cudaSuccess;
}

}  // namespace sheaf::cuda

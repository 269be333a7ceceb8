#include <cuda_runtime.h>

#include "cuda/base/devices.h"

namespace sheaf {
namespace {

__global__ void probe() {}

}  // namespace

std::string cuda_driver_trouble() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  int driver = 0;
  // Without a driver its version is 0, and then there is nothing to be wrong with it.
  if (error == cudaSuccess || error == cudaErrorNoDevice || cudaDriverGetVersion(&driver) != cudaSuccess ||
      driver == 0)
    return {};
  return std::string("the NVIDIA driver cannot be used: ") + cudaGetErrorString(error);
}

std::vector<std::string> cuda_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return {};
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp device{};
    if (cudaGetDeviceProperties(&device, i) == cudaSuccess) names.emplace_back(device.name);
  }
  return names;
}

std::string cuda_device_trouble(int number) {
  cudaDeviceProp device{};
  cudaFuncAttributes attributes{};
  cudaError_t error = cudaSetDevice(number);
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&device, number);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, probe);
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // forgets it, so that no later call reports it
  const std::string name = "cuda:" + std::to_string(number);
  if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction)
    return name + ": " + cudaGetErrorString(error);
  const std::string arch = std::to_string(device.major) + std::to_string(device.minor);
  return name + ": " + device.name + " is sm_" + arch + ", but this program was built for " +
         SHEAF_CUDA_ARCH_TEXT + "; build it with -DSHEAF_CUDA_ARCH=" + (arch == "90" ? "90a" : arch);
}

std::string cuda_build_text() {
  const std::string toolkit =
      std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
  return "CUDA " + toolkit + ": bf16 engine for " SHEAF_CUDA_ARCH_TEXT;
}

}  // namespace sheaf

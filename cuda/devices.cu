#include <cuda_runtime.h>

#include "cuda/devices.h"

namespace sheaf {

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

std::string cuda_build_text() {
  const std::string toolkit =
      std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
  return "CUDA " + toolkit + ": bf16 engine";
}

}  // namespace sheaf

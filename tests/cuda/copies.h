#pragma once
#include <vector>

#include "cuda/base/device_memory.h"

namespace sheaf::test {

template <class T>
cuda::DeviceMemory<T> to_device(const std::vector<T>& values) {
  cuda::DeviceMemory<T> device(static_cast<int64_t>(values.size()));
  if (!values.empty())
    cuda::check(cudaMemcpy(device.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
                "to the device");
  return device;
}

template <class T>
std::vector<T> to_host(const cuda::DeviceMemory<T>& device) {
  std::vector<T> host(static_cast<size_t>(device.size()));
  if (!host.empty())
    cuda::check(cudaMemcpy(host.data(), device.data(), host.size() * sizeof(T), cudaMemcpyDeviceToHost),
                "to the host");
  return host;
}

/// Memory that holds no number until it is written.
template <class T>
cuda::DeviceMemory<T> poisoned(int64_t count) {
  cuda::DeviceMemory<T> device(count);
  cuda::check(cudaMemset(device.data(), 0xff, static_cast<size_t>(count) * sizeof(T)), "poison");
  return device;
}

}  // namespace sheaf::test

#pragma once
#include <array>
#include <cuda_runtime.h>
#include <mutex>
#include <stdexcept>

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

}  // namespace sheaf::cuda

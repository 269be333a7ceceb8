#pragma once
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <span>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace sheaf::cuda {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail_for_now("CUDA: {}: {}", what, cudaGetErrorString(error));
}

/// Memory on the device, or (Pinned) on the host where the device can copy from it.
template <class T, bool Pinned = false>
class Memory {
 public:
  Memory() = default;
  explicit Memory(int64_t count) { grow(count); }
  ~Memory() { release(); }
  Memory(Memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }

  /// Makes room for `count` values; what was there is lost.
  void grow(int64_t count) {
    if (count <= count_) return;
    release();
    void* data = nullptr;
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    const cudaError_t error = Pinned ? cudaMallocHost(&data, bytes) : cudaMalloc(&data, bytes);
    if (error != cudaSuccess) {
      cudaGetLastError();  // or a later check would find it
      throw OutOfMemory(fmt::format("CUDA: {} MB of {} memory cannot be allocated: {}", bytes / 1000000,
                                    Pinned ? "pinned" : "device", cudaGetErrorString(error)));
    }
    data_ = static_cast<T*>(data);
    count_ = count;
  }
  T* data() const { return data_; }
  int64_t size() const { return count_; }

 private:
  void release() {
    if (data_) Pinned ? cudaFreeHost(data_) : cudaFree(data_);
    data_ = nullptr;
    count_ = 0;
  }
  T* data_ = nullptr;
  int64_t count_ = 0;
};

template <class T>
using DeviceMemory = Memory<T>;
template <class T>
using PinnedMemory = Memory<T, true>;

}  // namespace sheaf::cuda

#pragma once
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <memory>
#include <utility>

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
  /// What is moved from is empty: its size says so too.
  Memory(Memory&& other) noexcept : data_(std::move(other.data_)), count_(std::exchange(other.count_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    data_ = std::move(other.data_);
    count_ = std::exchange(other.count_, 0);
    return *this;
  }

  /// Makes room for `count` values; what was there is lost.
  void grow(int64_t count) {
    if (count <= count_) return;
    *this = {};
    void* data = nullptr;
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    const cudaError_t error = Pinned ? cudaMallocHost(&data, bytes) : cudaMalloc(&data, bytes);
    if (error != cudaSuccess) {
      cudaGetLastError();  // or a later check would find it
      throw OutOfMemory(fmt::format("CUDA: {} MB of {} memory cannot be allocated: {}", bytes / 1000000,
                                    Pinned ? "pinned" : "device", cudaGetErrorString(error)));
    }
    data_.reset(static_cast<T*>(data));
    count_ = count;
  }
  T* data() const { return data_.get(); }
  int64_t size() const { return count_; }

 private:
  struct Free {
    void operator()(T* data) const { Pinned ? cudaFreeHost(data) : cudaFree(data); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t count_ = 0;
};

template <class T>
using DeviceMemory = Memory<T>;
template <class T>
using PinnedMemory = Memory<T, true>;

/// A stream of the current device.
class Stream {
 public:
  Stream() { check(cudaStreamCreate(&stream_), "making a stream"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) {
    check(cudaEventCreateWithFlags(&event_, flags), "making an event");
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Every thread has a current device of its own.
inline void choose_device(int device) {
  check(cudaSetDevice(device), "choosing the device");
}

}  // namespace sheaf::cuda

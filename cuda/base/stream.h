#pragma once
#include <cuda_runtime.h>

#include "cuda/base/device_memory.h"

namespace sheaf::cuda {

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

}  // namespace sheaf::cuda

#pragma once
#include <cuda_runtime.h>

#include "cuda/cuda_backend.h"
#include "tests/skip.h"

namespace sheaf::test {

/// Of the first GPU: 90 for Hopper.
inline int gpu_capability() {
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
  return 10 * major + minor;
}

}  // namespace sheaf::test

#define NEED_GPU() \
  SKIP_UNLESS(!::sheaf::cuda_devices().empty(), ::sheaf::test::Lacking::gpu, "no CUDA device on this machine")

#define NEED_HOPPER() \
  NEED_GPU();         \
  SKIP_UNLESS(::sheaf::test::gpu_capability() == 90, ::sheaf::test::Lacking::hopper, "not a Hopper GPU")

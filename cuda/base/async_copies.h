#pragma once
// Copies from global to shared memory beside other work, and what matrix instructions read out of it: on
// every GPU from Ampere on.
#include "cuda/base/device_math.h"

namespace sheaf::cuda {

/// Copies 16 bytes, or writes zeros where `valid` is false.
__device__ inline void copy16(void* to, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes));
}
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;");
}
template <int pending>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending));
}

/// Four 8 × 16-byte matrices of shared memory; each lane names one row.
__device__ inline void load4(uint32_t (&r)[4], const void* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(from)));
}

}  // namespace sheaf::cuda

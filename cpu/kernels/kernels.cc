#include "cpu/kernels/kernels.h"

namespace sheaf {

const Kernels& best_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return avx512_kernels();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2_kernels();
#endif
  return base_kernels();
}

}  // namespace sheaf

#include "cpu/kernels/row_kernels.h"

namespace sheaf {

const Kernels& base_kernels() {
  static const Kernels kernels = make_kernels(base_multiply());
  return kernels;
}

const Kernels& best_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return avx512_kernels();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2_kernels();
#endif
  return base_kernels();
}

}  // namespace sheaf

#include "cpu/kernels/row_kernels.h"

namespace sheaf {

const Kernels& avx2_kernels() {
  static const Kernels kernels = make_kernels(avx2_multiply());
  return kernels;
}

}  // namespace sheaf

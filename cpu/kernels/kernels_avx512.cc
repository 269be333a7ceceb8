#include "cpu/kernels/row_kernels.h"

namespace sheaf {

const Kernels& avx512_kernels() {
  static const Kernels kernels = make_kernels(avx512_multiply());
  return kernels;
}

}  // namespace sheaf

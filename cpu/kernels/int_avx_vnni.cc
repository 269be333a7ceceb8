#include "cpu/kernels/int_vnni.h"

namespace sheaf {

const IntKernels& avx_vnni_int_kernels() {
  static constexpr IntKernels kernels{"AVX-VNNI", 4, 1, 0x80, multiply<VnniTiles>, add<VnniTiles>};
  return kernels;
}

}  // namespace sheaf

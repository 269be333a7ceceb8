#include "cpu/kernels/int_vnni.h"

namespace sheaf {

const IntKernels& avx_vnni_int_kernels() {
  static constexpr IntKernels kernels{
      "AVX-VNNI", {kChunk, 4, 1, 0x80}, {kChunk, 4, kPanel}, multiply<VnniTiles>, add<VnniTiles>};
  return kernels;
}

}  // namespace sheaf

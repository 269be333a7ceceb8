#include "cpu/kernels.h"
#include "cpu/simd/gated_silu.h"
#include "cpu/simd/multiply.h"
#include "cpu/simd/rms_norm.h"
#include "cpu/simd/softmax.h"

namespace sheaf {

const Kernels& avx512_kernels() {
  static constexpr Kernels kernels{kInstructionSet, panels_at_once(kMostRows), multiply, softmax, rms_norm,
                                   gated_silu};
  return kernels;
}

}  // namespace sheaf

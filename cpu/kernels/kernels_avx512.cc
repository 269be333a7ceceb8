#include "cpu/kernels/gated_silu.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/multiply.h"
#include "cpu/kernels/rms_norm.h"
#include "cpu/kernels/softmax.h"
#include "cpu/kernels/weigh.h"

namespace sheaf {

const Kernels& avx512_kernels() {
  static constexpr Kernels kernels{
      kInstructionSet, panels_at_once(kMostRows), multiply, softmax, weigh, rms_norm, gated_silu};
  return kernels;
}

}  // namespace sheaf

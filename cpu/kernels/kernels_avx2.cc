#include "cpu/kernels/gated_silu.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/rms_norm.h"
#include "cpu/kernels/softmax.h"
#include "cpu/kernels/weigh.h"

namespace sheaf {

const Kernels& avx2_kernels() {
  const auto [at_once, multiply] = avx2_multiply();
  static const Kernels kernels{kInstructionSet, at_once, multiply, softmax, weigh, rms_norm, gated_silu};
  return kernels;
}

}  // namespace sheaf

#include "cpu/kernels/multiply.h"

namespace sheaf {

MultiplyKernel avx2_multiply() {
  return {panels_at_once(kMostRows), multiply};
}

}  // namespace sheaf

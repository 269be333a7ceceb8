#include "cpu/kernels/multiply.h"

namespace sheaf {

MultiplyKernel base_multiply() {
  return {panels_at_once(kMostRows), multiply};
}

}  // namespace sheaf

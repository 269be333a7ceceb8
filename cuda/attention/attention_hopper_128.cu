#include "cuda/attention/hopper_kernel.h"

namespace sheaf::cuda {

template struct HopperHeads<128>;

}  // namespace sheaf::cuda

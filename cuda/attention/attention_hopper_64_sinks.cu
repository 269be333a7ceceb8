#include "cuda/attention/hopper_kernel.h"

namespace sheaf::cuda {

template struct HopperHeads<64, true>;

}  // namespace sheaf::cuda

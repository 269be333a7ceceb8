#include "core/base/interrupted.h"

namespace sheaf {

std::atomic<bool> interrupted = false;

}  // namespace sheaf

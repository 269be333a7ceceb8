#pragma once
#include <atomic>

namespace sheaf {

/// Set once somebody asks the work to stop in order; long work looks at it between its steps.
inline std::atomic<bool> interrupted = false;

}  // namespace sheaf

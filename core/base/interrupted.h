#pragma once
#include <atomic>

namespace sheaf {

/// Set once somebody asks the work to stop in order; long work looks at it between its steps.
extern std::atomic<bool> interrupted;

}  // namespace sheaf

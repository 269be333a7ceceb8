#pragma once
#include <atomic>

namespace sheaf {

/// Set once somebody asks the program to stop in order. Work on a job looks at the job's own flag between its
/// steps (Job::stop), which is this one unless the job is one of several in a process.
inline std::atomic<bool> interrupted = false;

}  // namespace sheaf

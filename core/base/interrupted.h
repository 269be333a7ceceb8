#pragma once
#include <atomic>

namespace sheaf {

/// Set once somebody asks the program to stop in order. Work on a job looks at the job's own flag between its
/// steps (Job::stop), which is this one unless the job is one of several in a process.
inline std::atomic<bool> interrupted = false;

/// The flag that this thread looks at where no job is at hand, as while it waits for a store. A thread that
/// works for another one takes over its flag.
inline thread_local const std::atomic<bool>* own_stop = &interrupted;

/// Whether this thread works for one of several jobs in a process, and that one is to stop. The program
/// itself ends at a signal, or between two steps.
inline bool own_job_stopped() {
  return own_stop != &interrupted && *own_stop;
}

}  // namespace sheaf

#pragma once
#include <string>

namespace sheaf {

/// Processor time that this process may use.
struct UsableCores {
  int cores = 1;     ///< cores that the process may run on
  double limit = 0;  ///< cores' time that its control group allows; 0: no limit

  /// Threads that can work at the same time; more would only slow each other down.
  int threads() const;
};

/// `root` stands before the kernel's paths, for tests.
UsableCores usable_cores(const std::string& root = "");

}  // namespace sheaf

#pragma once
#include <string>

namespace sheaf {

// This process and the processor that it runs on.

/// Processor time that this process may use.
struct UsableCores {
  int cores = 1;     ///< cores that the process may run on
  double limit = 0;  ///< cores' time that its control group allows; 0: no limit

  /// Threads that can work at the same time; more would only slow each other down.
  int threads() const;
};

/// `root` stands before the kernel's paths, for tests.
UsableCores usable_cores(const std::string& root = "");

/// "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "Neoverse-V1"; empty where the machine does not say.
std::string processor_name();

/// Its name and how many cores of it there are: what a calibration of the CPU is good for.
std::string processor_and_cores();

/// What this process has used so far.
struct ProcessUse {
  double seconds = 0;      ///< of processors
  long interruptions = 0;  ///< times that others took a processor from it
};

ProcessUse process_use();

/// Whether other programs took processors from the threads so often between two moments that the time in
/// between says little about the machine.
bool disturbed(const ProcessUse& before, const ProcessUse& after, double seconds, int threads);

/// Seconds since the operating system started this process, to a hundredth.
double process_seconds();

/// The most memory this process has held, in bytes.
double process_peak_bytes();

}  // namespace sheaf

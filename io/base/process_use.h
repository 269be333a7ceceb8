#pragma once

namespace sheaf {

/// What this process has used so far.
struct ProcessUse {
  double seconds = 0;      ///< of processors
  long interruptions = 0;  ///< times that others took a processor from it
};

ProcessUse process_use();

/// Others work on the machine: they took a processor from one of the threads so often between two moments
/// that what it took says little about the machine.
bool disturbed(const ProcessUse& before, const ProcessUse& after, double seconds, int threads);

}  // namespace sheaf

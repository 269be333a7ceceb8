#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/job/job.h"

namespace CLI {
class App;
}

namespace sheaf {

/// The options that every command on a job has.
struct JobOptions {
  std::string path;
  std::vector<std::string> overrides;
  int64_t limit = 0;
  int32_t threads = -1;
  std::string device;
  bool reproducible = false;
  bool json = false;
  bool quiet = false;

  void add_to(CLI::App& command);
  /// The job file with the options applied.
  Job read() const;
};

class Workbench;
/// Says what the workbench has to say and takes in standard input where that is the corpus. False when
/// interrupted.
bool take_input(Workbench& bench);

}  // namespace sheaf

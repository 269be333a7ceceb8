#pragma once
#include <string>
#include <vector>

#include "core/job/job.h"

namespace sheaf {

/// Every path that the job names to read from; empty ones among them.
std::vector<std::string> paths_read(const Job& job);

/// Refuses an output folder whose rows a later look at input.path would take for corpus: resuming or
/// repeating such a run would be impossible.
void check_output_apart(const Job& job);

/// Refuses a log whose lines would stand in a file that the run reads or writes, or whose folder is missing.
void check_log_apart(const std::string& log, const Job& job);

}  // namespace sheaf

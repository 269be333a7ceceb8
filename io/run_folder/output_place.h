#pragma once
#include "core/job/job.h"

namespace sheaf {

/// Refuses an output folder whose rows a later look at input.path would take for corpus: resuming or
/// repeating such a run would be impossible.
void check_output_apart(const Job& job);

/// Refuses a log whose lines would stand in a file that the run reads or writes, or whose folder is missing.
void check_log_apart(const std::string& log, const Job& job);

}  // namespace sheaf

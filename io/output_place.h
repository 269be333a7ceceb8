#pragma once
#include "core/job.h"

namespace sheaf {

/// Refuses an output folder whose rows a later look at input.path would take for corpus: resuming or
/// repeating such a run would be impossible.
void check_output_apart(const Job& job);

}  // namespace sheaf

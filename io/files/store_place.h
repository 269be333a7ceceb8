#pragma once
#include "core/job/job.h"

namespace sheaf {

/// Refuses a job whose store of keys and values and whose output folder lie one inside the other, through
/// links too: a restart moves and removes folders of the run, and a full store removes files of its own.
void check_store_apart(const Job& job);

}  // namespace sheaf

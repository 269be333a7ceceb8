#pragma once
#include <vector>

#include "app/eval_grid.h"

namespace sheaf {

/// Finds before the first run what would stop a later one: a model that cannot be read, and (without
/// `restart`) a folder that holds the run of another job.
void check_runs(const std::vector<EvalCell>& cells, bool restart);

}  // namespace sheaf

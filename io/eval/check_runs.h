#pragma once
#include <vector>

#include "io/eval/eval_grid.h"

namespace sheaf {

/// Finds before the first run what would stop a later one: a model that cannot be read, and (without
/// `restart`) a folder that holds the run of another job.
void check_runs(const std::vector<EvalCell>& cells, bool restart);

/// Whether the job's folder holds a run over rows that are no longer those of its corpus.
bool holds_other_corpus(const Job& job);

}  // namespace sheaf

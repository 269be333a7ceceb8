#pragma once
#include "io/eval/eval_file.h"

namespace sheaf {

/// Leaves what the command line chooses; refuses names that the evaluation does not have.
void choose(Eval& eval, const EvalChoice& choice);

}  // namespace sheaf

#pragma once
#include <string>

#include "tests/app/program.h"

namespace sheaf::test {

/// Runs `tools/compare_runs ARGUMENTS` through the shell, from the project's root.
inline Ran compare_runs(const TempFolder& scratch, const std::string& arguments) {
  return run_shell(scratch, "tools/compare_runs --sheaf " SHEAF_BINARY " " + arguments);
}

}  // namespace sheaf::test

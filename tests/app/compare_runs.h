#pragma once
#include <string>

#include "tests/app/program.h"

namespace sheaf::test {

/// Runs `tools/compare_runs ARGUMENTS` through the shell, from the project's root.
inline Ran compare_runs(const Scratch& scratch, const std::string& arguments) {
  const std::string command = std::string("tools/compare_runs --sheaf ") + SHEAF_BINARY + " " + arguments +
                              " >" + scratch.file("stdout") + " 2>" + scratch.file("stderr") + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_text(scratch.file("stdout")),
          read_text(scratch.file("stderr"))};
}

}  // namespace sheaf::test

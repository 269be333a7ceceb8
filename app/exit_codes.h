#pragma once
#include <array>

namespace sheaf {

struct ExitCode {
  int code;
  const char* meaning;
};

/// What the help and the man page say; core/base/error.h and the commands give them.
constexpr std::array<ExitCode, 6> kExitCodes = {{{0, "success"},
                                                 {1, "finished with rejected records"},
                                                 {2, "wrong usage, configuration or input"},
                                                 {3, "fatal: the machine or the program failed"},
                                                 {75, "failed for now (device, disk or store): try again"},
                                                 {130, "interrupted: rerun the same command to resume"}}};

}  // namespace sheaf

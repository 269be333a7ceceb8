#pragma once
#include <array>

namespace sheaf {

struct ExitCode {
  int code;
  const char* meaning;
};

/// What the help and the man page say; core/base/error.h and the commands give them.
constexpr std::array<ExitCode, 5> kExitCodes = {{{0, "all rows fine"},
                                                 {1, "done with rejected rows"},
                                                 {2, "usage, configuration or input wrong"},
                                                 {3, "fatal: the machine failed"},
                                                 {130, "interrupted: rerun the same command to resume"}}};

}  // namespace sheaf

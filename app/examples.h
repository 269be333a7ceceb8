#pragma once
#include <string>
#include <vector>

namespace sheaf {

/// Command lines to copy, for the help and the man page of a command.
std::vector<std::string> examples_of(const std::string& command);

}  // namespace sheaf

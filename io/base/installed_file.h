#pragma once
#include <string>

namespace sheaf {

/// A file that is installed with the program: share/sheaf/`name` in a folder above it; "" where there is
/// none.
std::string find_installed_file(const std::string& name);

}  // namespace sheaf

#pragma once
#include <string>

namespace sheaf {

/// Name and version, and what the program was built with.
std::string version_text();

}  // namespace sheaf

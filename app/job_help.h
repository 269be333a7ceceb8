#pragma once
#include <string>

namespace sheaf {

/// What a key of a job file means and takes; of a section, or of all ("") a list of keys.
std::string job_help(const std::string& path);

}  // namespace sheaf

#pragma once
#include <string>
#include <vector>

#include "core/job.h"

namespace sheaf {

/// Reads a job file, applies `key.path=value` overrides and checks it: an unknown key, a wrong type, a value
/// out of range or a missing file is an error with file, line and the nearest valid key.
Job read_job(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace sheaf

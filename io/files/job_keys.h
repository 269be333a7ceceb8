#pragma once
#include <vector>

#include "io/base/yaml_reader.h"

namespace sheaf {

/// Every key that `--set` can change, in the order in which jobs are read, and what it takes.
std::vector<KeyAsked> job_keys();

}  // namespace sheaf

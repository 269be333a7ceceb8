#pragma once
#include <string>
#include <vector>

namespace sheaf {

/// Every key that `--set` can change, in the order in which jobs are read: "model.path", "method.documents".
std::vector<std::string> job_keys();

}  // namespace sheaf

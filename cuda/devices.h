#pragma once
#include <string>
#include <vector>

namespace sheaf {

/// The names of the CUDA devices of this machine; empty where there are none or no driver.
std::vector<std::string> cuda_devices();

/// What the CUDA part of this build is: toolkit version and what it can do.
std::string cuda_build_text();

}  // namespace sheaf

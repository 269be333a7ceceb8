#pragma once
#include <string>
#include <vector>

namespace sheaf {

/// The names of the CUDA devices of this machine; empty where there are none or no driver.
std::vector<std::string> cuda_devices();

/// Why there are no devices although there is a driver (too old for this program, mostly); empty where all is
/// well.
std::string cuda_driver_trouble();

/// Why this program cannot compute on a device: no code for its architecture, or a driver that refuses; empty
/// where it can.
std::string cuda_device_trouble(int number);

/// What the CUDA part of this build is: toolkit version, what it can do, and on which GPUs.
std::string cuda_build_text();

}  // namespace sheaf

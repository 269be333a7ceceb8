#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/estimate/hardware.h"

namespace sheaf {

/// Reads configs/hardware.yaml or a file like it, and the calibrations that it names, beside it. A CPU has
/// its calibration in `precision` where there is one, else that in fp32.
HardwareList read_hardware(const std::string& path, CpuPrecision precision = CpuPrecision::f32);

/// How long steps take on the `device` that a backend names, where the list has a calibration of it: a
/// CPU's counts as another machine's where the processor or its number of cores differ, and has a wider
/// error. None where there is none, or no such list or a wrong one, which `sheaf estimate` would refuse.
std::optional<DeviceModel> find_device_model(const std::string& device);

/// Where the list is: configs/hardware.yaml from where the user stands or from a folder above the program,
/// else share/sheaf/configs/hardware.yaml, where it is installed.
std::string find_hardware_file();

}  // namespace sheaf

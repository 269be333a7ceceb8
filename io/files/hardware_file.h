#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/estimate/hardware.h"
#include "core/job/job.h"

namespace sheaf {

/// Reads configs/hardware.yaml or a file like it, and the calibrations that it names, beside it. A device has
/// its calibration in what the job's model is computed in there, where there is one, else its first.
HardwareList read_hardware(const std::string& path, const Job::ModelPart& model = {});

/// How long steps take on the `device` that a backend names, where the list has a calibration of it (of a
/// GPU, in `on_gpu`): a
/// CPU's counts as another machine's where the processor or its number of cores differ, and has a wider
/// error. None where there is none, or no such list or a wrong one, which `sheaf estimate` would refuse.
std::optional<DeviceModel> find_device_model(const std::string& device, Precision on_gpu = Precision::bf16);

/// Where the list is: configs/hardware.yaml from where the user stands or from a folder above the program,
/// else share/sheaf/configs/hardware.yaml, where it is installed.
std::string find_hardware_file();

}  // namespace sheaf

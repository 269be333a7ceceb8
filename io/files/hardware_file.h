#pragma once
#include <optional>
#include <string>

#include "core/estimate/device_profile.h"
#include "core/estimate/hardware.h"
#include "core/job/job.h"

namespace sheaf {

/// A profile as JSON, one measurement a line.
std::string profile_text(const DeviceProfile& profile);

/// Reads what profile_text wrote; refuses anything else, naming the place.
DeviceProfile read_profile(const std::string& path);

/// Reads configs/hardware.yaml or a file like it, and the profiles that it names, beside it. A device has
/// its profile in what the job's model is computed in there, where there is one, else its first. `keys`:
/// see attended_precision().
HardwareList read_hardware(const std::string& path, const Job::ModelPart& model = {},
                           KvPrecision keys = KvPrecision::automatic);

/// How long steps take on the `device` that a backend names, where the list has a profile of it (of a
/// GPU, in `on_gpu`, and with `keys` where there is one): a CPU's counts as another machine's where the
/// processor or its number of cores differ, and has a wider error. None where there is none, or no such list
/// or a wrong one, which `sheaf estimate` would refuse.
std::optional<DeviceModel> find_device_model(const std::string& device, Precision on_gpu = Precision::bf16,
                                             KvPrecision keys = KvPrecision::automatic);

/// Where the list is: configs/hardware.yaml from where the user stands or from a folder above the program,
/// else share/sheaf/configs/hardware.yaml, where it is installed.
std::string find_hardware_file();

}  // namespace sheaf

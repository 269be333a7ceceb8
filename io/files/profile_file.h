#pragma once
#include <string>

#include "core/estimate/device_profile.h"

namespace sheaf {

/// A profile as JSON, one measurement a line.
std::string profile_text(const DeviceProfile& profile);

/// Reads what profile_text wrote; refuses anything else, naming the place.
DeviceProfile read_profile(const std::string& path);

}  // namespace sheaf

#pragma once
#include <string>
#include <vector>

#include "core/estimate/hardware.h"

namespace sheaf {

struct HardwareList {
  std::string path;
  std::string prices_as_of;
  std::vector<Hardware> devices;

  /// Refuses an unknown name and lists the known ones.
  const Hardware& find(const std::string& name) const;
};

/// Reads configs/hardware.yaml or a file like it, and the calibrations that it names, beside it.
HardwareList read_hardware(const std::string& path);

/// Where the list is: configs/hardware.yaml from where the user stands, else beside the program.
std::string find_hardware_file();

}  // namespace sheaf

#pragma once
#include <string>

#include "core/estimate/calibration.h"

namespace sheaf {

/// A calibration as JSON, one measurement a line.
std::string calibration_text(const Calibration& calibration);

/// Reads what calibration_text wrote; refuses anything else, naming the place.
Calibration read_calibration(const std::string& path);

}  // namespace sheaf

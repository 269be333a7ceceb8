#pragma once
#include <string>
#include <vector>

#include "core/estimate/calibration.h"

namespace sheaf {

/// Times made-up steps of the given shapes with random weights on a device; none given: shapes that suit it.
/// Takes a minute or two; says on standard error how far it is.
Calibration calibrate(const std::string& device, std::vector<std::string> shapes);

}  // namespace sheaf

#pragma once
#include <string>
#include <vector>

#include "core/estimate/api_cost.h"

namespace sheaf {

/// The prices of configs/api-prices.yaml, or of a file like it. `names`: "all", or some with commas between
/// them; refuses an unknown one and lists the known ones.
std::vector<ApiPrice> read_api_prices(const std::string& path, const std::string& names);

/// Where that file is: beside the list of devices (find_hardware_file).
std::string find_api_prices();

}  // namespace sheaf

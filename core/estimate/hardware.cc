#include "core/estimate/hardware.h"

#include <algorithm>

namespace sheaf {

const Instance* Hardware::cheapest() const {
  const auto found = std::ranges::min_element(instances, {}, &Instance::usd_per_device_hour);
  return found == instances.end() ? nullptr : &*found;
}

}  // namespace sheaf

#include "core/estimate/hardware.h"

namespace sheaf {

std::optional<Price> Hardware::price(int32_t count) const {
  std::optional<Price> best;
  for (const Instance& each : instances) {
    const double share = each.usd_per_device_hour() * count;
    const int32_t whole = (count + each.devices - 1) / each.devices;
    const double rented = each.usd_per_hour * whole;
    if (!best) best = {&each, share, &each, rented};
    if (rented < best->rented_usd_per_hour) {
      best->rented = &each;
      best->rented_usd_per_hour = rented;
    }
    if (share < best->usd_per_hour) {
      best->instance = &each;
      best->usd_per_hour = share;
    }
  }
  return best;
}

}  // namespace sheaf

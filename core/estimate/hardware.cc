#include "core/estimate/hardware.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "core/base/error.h"

namespace sheaf {

std::optional<Price> Hardware::price(int32_t count) const {
  std::optional<Price> best;
  const bool part =
      std::ranges::none_of(instances, [&](const Instance& each) { return each.devices <= count; });
  for (const Instance& each : instances) {
    const int32_t whole = (count + each.devices - 1) / each.devices;
    const double rented = each.usd_per_hour * whole;
    const double counted = part ? each.usd_per_device_hour() * count : rented;
    if (!best || counted < best->usd_per_hour) best = {&each, whole, counted, rented};
  }
  return best;
}

double Hardware::flops_per_byte() const {
  if (gpu) return bandwidth > 0 ? (wanted == Precision::fp8 ? fp8_flops : flops) / bandwidth : 0;
  // A CPU is in the list by what was measured: weights of so many bytes.
  const double weight = precision == Precision::int8 ? 1 : precision == Precision::int16 ? 2 : 4;
  return device.peak_weights > 0 ? device.peak_flops / (device.peak_weights * weight) : 0;
}

int32_t HardwareList::price_months(std::chrono::year_month today) const {
  using std::chrono::month, std::chrono::year;
  const auto then = year(std::stoi(prices_as_of.substr(0, 4))) /
                    month(static_cast<unsigned>(std::stoi(prices_as_of.substr(5, 2))));
  return static_cast<int32_t>((today - then).count());
}

const Hardware& HardwareList::find(const std::string& name, const std::string& from) const {
  const auto found = std::ranges::find(devices, name, &Hardware::name);
  if (found != devices.end()) return *found;
  std::vector<std::string> names;
  for (const Hardware& each : devices) names.push_back(each.name);
  refuse("{}: {} is not in {}; use one of {}", from, name, path, fmt::join(names, ", "));
}

}  // namespace sheaf

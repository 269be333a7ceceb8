#pragma once
#include <functional>

#include "core/estimate/device_profile.h"
#include "io/jobs/bench_backend.h"

namespace sheaf {

/// Times made-up steps of the given shapes with random weights, on a device and in numbers `like` those
/// given; no shapes: such as suit the device. Takes a minute or two. `left_out` is told of a shape that does
/// not fit, `progress` how far it is with one.
DeviceProfile profile_device(const BenchModel& like, std::vector<std::string> shapes,
                             const std::function<void(const std::string& text)>& left_out,
                             const std::function<void(const std::string& text, bool last)>& progress);

}  // namespace sheaf

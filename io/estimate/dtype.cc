#include <algorithm>

#include "core/base/error.h"
#include "io/estimate/inputs.h"

namespace sheaf {

void check_dtype(const Job& job, const SweepAxis& hardware, const HardwareList& list) {
  if (job.model.dtype == Precision::automatic) return;
  for (const std::string& name : hardware.values)
    if (!list.find(name, hardware.from).computes_as_wanted())
      refuse(
          "{}: sheaf does not compute in FP8 on {}; leave out model.dtype: fp8, or use an Ada or Hopper GPU",
          hardware.from, name);
  const bool gpu = hardware.values.empty()
                       ? job.engine.device.kind == Device::Kind::cuda
                       : std::ranges::any_of(hardware.values, [&](const std::string& name) {
                           return list.find(name, hardware.from).gpu;
                         });
  if (only_on_gpu(job.model.dtype)) {
    if (hardware.values.empty() ? job.engine.device.kind == Device::Kind::cpu : !gpu)
      refuse("model.dtype: {} works only on a GPU; leave it out for the CPU", word_of(job.model.dtype));
  } else if (gpu)
    refuse("model.dtype: {} works only on the CPU; leave it out, or set engine.device: cpu{}",
           word_of(job.model.dtype), hardware.values.empty() ? "" : " and name no GPU");
}

}  // namespace sheaf

#pragma once
#include "io/machine/backend_kinds.h"

namespace sheaf {

/// Where a job is computed.
struct DeviceChoice {
  const BackendKind* kind = nullptr;
  std::vector<int> devices;  ///< one for each engine
  std::string notice;        ///< what the user should know of the choice
};

/// Refuses a device that this program or machine lacks, and one that does not compute in `dtype`. `gpu`: what
/// `auto` prefers.
DeviceChoice choose_device(const Device& asked, Precision dtype,
                           const BackendKind& gpu = backend_kind(Device::Kind::cuda));

}  // namespace sheaf

#include "io/machine/backend_kinds.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/error.h"

namespace sheaf {

std::span<const BackendKind> backend_kinds() {
  static const std::array kinds = {cpu_kind(), cuda_kind()};
  return kinds;
}

const BackendKind& backend_kind(Device::Kind kind) {
  return *std::ranges::find(backend_kinds(), kind, &BackendKind::kind);
}

bool has_nvidia_driver() {
  std::error_code ignored;
  return std::filesystem::exists("/proc/driver/nvidia/version", ignored) ||
         std::filesystem::exists("/dev/nvidiactl", ignored);
}

BackendKind missing_cuda_kind() {
  static constexpr const char* missing = "this program was built without CUDA";
  return {
      .kind = Device::Kind::cuda,
      .word = "cuda",
      .gpu = true,
      .missing = missing,
      .devices = [] { return std::vector<std::string>(); },
      .driver_trouble = [] { return std::string(); },
      .device_trouble = [](int) { return std::string(missing); },
      .memory = [](int) { return int64_t{0}; },
      .pool_bytes = cuda_pool_bytes,
      .footprint = [](const ModelConfig& config,
                      const BackendOptions& options) { return cuda_footprint(config, options.fp8_keys); },
      .make = [](const Model&, const BackendOptions&) -> Backends { refuse("{}", missing); },
      .make_random = [](const ModelConfig&, const BackendOptions&, uint32_t) -> std::unique_ptr<Backend> {
        refuse("{}", missing);
      },
      .examine =
          [] {
            MachineFact fact{"GPU",
                             "this build has no CUDA code; jobs run on the CPU",
                             "",
                             {{"driver", has_nvidia_driver()}}};
            if (has_nvidia_driver())
              fact.fix =
                  "this machine has an NVIDIA driver: to use the GPU, install the CUDA toolkit (nvcc) and "
                  "build sheaf again";
            return std::vector{fact};
          },
  };
}

}  // namespace sheaf

#include <filesystem>
#include <fmt/format.h>

#include "app/machine.h"
#ifdef SHEAF_WITH_CUDA
#include <cuda_runtime_api.h>

#include "cuda/devices.h"
#endif

namespace sheaf {
namespace {

/// Whether NVIDIA's driver is loaded, asked without CUDA.
bool has_driver() {
  return std::filesystem::exists("/proc/driver/nvidia/version") || std::filesystem::exists("/dev/nvidiactl");
}

}  // namespace

#ifdef SHEAF_WITH_CUDA
std::vector<MachineFact> examine_gpus() {
  const size_t count = cuda_devices().size();
  std::vector<MachineFact> facts;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    cudaDeviceProp device{};
    if (cudaGetDeviceProperties(&device, i) != cudaSuccess) continue;
    const std::string trouble = cuda_device_trouble(i);
    MachineFact fact{
        fmt::format("cuda:{}", i),
        fmt::format("{}, {:.1f} GB, sm_{}{}, {} multiprocessors; this build {}", device.name,
                    static_cast<double>(device.totalGlobalMem) / 1e9, device.major, device.minor,
                    device.multiProcessorCount, trouble.empty() ? "runs on it" : "does not run on it"),
        trouble,
        {}};
    fact.details = {{"name", device.name},
                    {"bytes", device.totalGlobalMem},
                    {"architecture", fmt::format("sm_{}{}", device.major, device.minor)},
                    {"usable", trouble.empty()}};
    facts.push_back(std::move(fact));
  }
  if (facts.empty()) {
    facts.push_back({"GPU", "none that CUDA can use; jobs run on the CPU", "", {{"driver", has_driver()}}});
    if (has_driver())
      facts[0].fix =
          "NVIDIA's driver is loaded but gives CUDA no device: it may be too old for this build's CUDA, or "
          "CUDA_VISIBLE_DEVICES hides them; see nvidia-smi";
  }
  return facts;
}
#else
std::vector<MachineFact> examine_gpus() {
  MachineFact fact{"GPU", "this build has no CUDA code; jobs run on the CPU", "", {{"driver", has_driver()}}};
  if (has_driver())
    fact.fix =
        "there is an NVIDIA driver here: install the CUDA toolkit (nvcc) and build again to use the GPU";
  return {fact};
}
#endif

}  // namespace sheaf

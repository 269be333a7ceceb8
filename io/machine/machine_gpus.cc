#include <filesystem>
#include <fmt/format.h>
#include <fstream>

#include "io/machine/machine.h"
#ifdef SHEAF_WITH_CUDA
#include <cuda_runtime_api.h>

#include "cuda/base/devices.h"
#endif

namespace sheaf {
namespace {

/// Whether NVIDIA's driver is loaded, asked without CUDA.
bool has_driver() {
  return std::filesystem::exists("/proc/driver/nvidia/version") || std::filesystem::exists("/dev/nvidiactl");
}

}  // namespace

#ifdef SHEAF_WITH_CUDA
namespace {

std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

/// " (580.65.06)": the first word of the kernel module's line that is a version; empty where it is not said.
std::string driver_release() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos)
      return " (" + word + ")";
  }
  return {};
}

}  // namespace

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
    if (const std::string trouble = cuda_driver_trouble(); !trouble.empty())
      facts[0].fix = fmt::format(
          "{}; this build needs a driver for CUDA {}: update it, or build sheaf with an older toolkit",
          trouble, cuda_version(CUDART_VERSION));
    else if (has_driver())
      facts[0].fix =
          "the NVIDIA driver is loaded, but CUDA finds no device: CUDA_VISIBLE_DEVICES may hide it, or the "
          "container may lack access to it; see nvidia-smi";
  }
  int driver = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0)
    facts.push_back({"CUDA",
                     fmt::format("runtime {}, driver for up to {}{}", cuda_version(CUDART_VERSION),
                                 cuda_version(driver), driver_release()),
                     "",
                     {{"runtime", cuda_version(CUDART_VERSION)}, {"driver", cuda_version(driver)}}});
  else
    facts.push_back({"CUDA",
                     fmt::format("runtime {}, no driver", cuda_version(CUDART_VERSION)),
                     "",
                     {{"runtime", cuda_version(CUDART_VERSION)}, {"driver", nullptr}}});
  return facts;
}
#else
std::vector<MachineFact> examine_gpus() {
  MachineFact fact{"GPU", "this build has no CUDA code; jobs run on the CPU", "", {{"driver", has_driver()}}};
  if (has_driver())
    fact.fix =
        "this machine has an NVIDIA driver: to use the GPU, install the CUDA toolkit (nvcc) and build sheaf "
        "again";
  return {fact};
}
#endif

}  // namespace sheaf

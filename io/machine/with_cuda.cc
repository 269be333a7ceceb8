#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fstream>
#include <future>

#include "core/base/error.h"
#include "cuda/base/blas.h"
#include "cuda/base/devices.h"
#include "cuda/cuda_backend.h"
#include "io/machine/backend_kinds.h"

namespace sheaf {
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

std::vector<MachineFact> examine_gpus() {
  const size_t count = cuda_devices().size();
  std::vector<MachineFact> facts;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    cudaDeviceProp device{};
    if (cudaGetDeviceProperties(&device, i) != cudaSuccess) continue;
    const std::string trouble = cuda_device_trouble(i);
    facts.push_back(
        {fmt::format("cuda:{}", i),
         fmt::format("{}, {:.1f} GB, sm_{}{}, {} multiprocessors; this build {}", device.name,
                     static_cast<double>(device.totalGlobalMem) / 1e9, device.major, device.minor,
                     device.multiProcessorCount, trouble.empty() ? "runs on it" : "does not run on it"),
         trouble,
         {{"name", device.name},
          {"bytes", device.totalGlobalMem},
          {"architecture", fmt::format("sm_{}{}", device.major, device.minor)},
          {"usable", trouble.empty()}}});
  }
  if (facts.empty()) {
    facts.push_back(
        {"GPU", "none that CUDA can use; jobs run on the CPU", "", {{"driver", has_nvidia_driver()}}});
    if (const std::string trouble = cuda_driver_trouble(); !trouble.empty())
      facts[0].fix = fmt::format(
          "{}; this build needs a driver for CUDA {}: update it, or build sheaf with an older toolkit",
          trouble, cuda_version(CUDART_VERSION));
    else if (has_nvidia_driver())
      facts[0].fix =
          "the NVIDIA driver is loaded, but CUDA finds no device: CUDA_VISIBLE_DEVICES may hide it, or the "
          "container may lack access to it; see nvidia-smi";
  }
  int driver = 0;
  const bool known = cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
  const std::string runtime = cuda_version(CUDART_VERSION), newest = known ? cuda_version(driver) : "";
  MachineFact cuda{"CUDA", fmt::format("runtime {}, no driver", runtime), "", {{"runtime", runtime}}};
  if (known) cuda.text = fmt::format("runtime {}, driver for up to {}{}", runtime, newest, driver_release());
  cuda.details["driver"] = known ? nlohmann::ordered_json(newest) : nlohmann::ordered_json();
  facts.push_back(std::move(cuda));
  return facts;
}

CudaOptions cuda_options(const BackendOptions& options, int device) {
  return {device, options.precision == Precision::fp8, options.fp8_keys, options.weights,
          options.reproducible};
}

/// Several devices are filled at the same time.
Backends make_cuda_backends(const Model& model, const BackendOptions& options) {
  std::vector<std::future<std::unique_ptr<Backend>>> made;
  for (const int device : options.devices)
    made.push_back(std::async(
        options.devices.size() > 1 ? std::launch::async : std::launch::deferred,
        [&model, each = cuda_options(options, device)] { return make_cuda_backend(model, each); }));
  Backends backends;
  for (auto& each : made) backends.push_back(each.get());
  return backends;
}

}  // namespace

BackendKind cuda_kind() {
  BackendKind kind = missing_cuda_kind();
  kind.missing.clear();
  kind.devices = cuda_devices;
  kind.driver_trouble = cuda_driver_trouble;
  kind.device_trouble = cuda_device_trouble;
  kind.memory = cuda_free_bytes;
  kind.make = make_cuda_backends;
  kind.make_random = [](const ModelConfig& config, const BackendOptions& options, uint32_t seed) {
    return make_random_cuda_backend(config, cuda_options(options, options.devices.front()), seed);
  };
  kind.examine = examine_gpus;
  return kind;
}

std::string cuda_part_text() {
  return cuda_build_text();
}

/// Without a GPU cuBLAS is not needed, and it is no trouble that it cannot be opened.
void add_cuda_libraries(std::vector<std::pair<std::string, std::string>>& versions, std::string& trouble) {
  try {
    int part[3] = {};
    const cuda::Blas& blas = cuda::cublas();
    blas.property(MAJOR_VERSION, &part[0]);
    blas.property(MINOR_VERSION, &part[1]);
    blas.property(PATCH_LEVEL, &part[2]);
    versions.emplace_back("cuBLAS", fmt::format("{}.{}.{}", part[0], part[1], part[2]));
  } catch (const Error& error) {
    if (!cuda_devices().empty()) trouble = error.what();
  }
}

}  // namespace sheaf

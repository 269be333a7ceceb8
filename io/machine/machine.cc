#include "io/machine/machine.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

#include "cpu/kernels/int_kernels.h"
#include "cpu/kernels/kernels.h"
#include "io/base/paths.h"
#include "io/base/process.h"
#ifdef SHEAF_WITH_CUDA
#include <cuda_runtime_api.h>

#include "cuda/base/devices.h"
#endif
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace sheaf {
namespace {

namespace fs = std::filesystem;

constexpr double kGB = 1e9;

using Features = std::vector<std::pair<const char*, bool>>;

Features processor_features() {
#if defined(__x86_64__)
  return {{"avx2", __builtin_cpu_supports("avx2") != 0},
          {"fma", __builtin_cpu_supports("fma") != 0},
          {"avx512f", __builtin_cpu_supports("avx512f") != 0}};
#elif defined(__aarch64__)
  // The numbers of Linux's hwcap.h, which older ones do not name.
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  return {{"neon", (first >> 1 & 1) != 0},     {"fp16", (first >> 10 & 1) != 0},
          {"dotprod", (first >> 20 & 1) != 0}, {"sve", (first >> 22 & 1) != 0},
          {"i8mm", (second >> 13 & 1) != 0},   {"bf16", (second >> 14 & 1) != 0}};
#else
  return {};
#endif
}

const char* architecture() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown architecture";
#endif
}

MachineFact examine_processor() {
  MachineFact fact{"processor", processor_name(), "", {}};
  if (fact.text.empty()) fact.text = architecture();
  const std::string kernels = best_kernels().name;
  auto& features = fact.details["features"] = nlohmann::ordered_json::object();
  std::string has;
  for (const auto& [name, there] : processor_features()) {
    features[name] = there;
    if (there) has += (has.empty() ? " with " : " ") + std::string(name);
  }
  const std::string int_kernels = best_int_kernels().name;
  fact.text += has + "; the CPU backend uses " + kernels + ", and " + int_kernels + " for whole numbers";
  fact.details["architecture"] = architecture();
  fact.details["kernels"] = kernels;
  fact.details["int_kernels"] = int_kernels;
#if defined(__x86_64__)
  if (&best_kernels() == &base_kernels())
    fact.fix = "without AVX2 and FMA the CPU backend is several times slower; use a newer machine or a GPU";
#endif
  return fact;
}

/// The number in a control group's file; -1 where there is none or no limit.
int64_t group_limit(const char* path) {
  std::ifstream file(path);
  int64_t value = -1;
  return file >> value ? value : -1;
}

/// "MemAvailable" of /proc/meminfo in bytes; 0 where it is not said.
int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    int64_t kilobytes = 0;
    file >> kilobytes;
    std::getline(file, unit);
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return 0;
}

MachineFact examine_cores() {
  const UsableCores usable = usable_cores();
  MachineFact fact{
      "cores", fmt::format("{} available to this process", usable.cores), "", {{"cores", usable.cores}}};
  if (usable.limit > 0) {
    fact.details["limit"] = usable.limit;
    fact.text += fmt::format(", limited to {:.1f} cores' time by the control group", usable.limit);
  }
  fact.details["threads"] = usable.threads();
  if (usable.threads() < usable.cores)
    fact.text += fmt::format("; runs use {} thread{}", usable.threads(), usable.threads() == 1 ? "" : "s");
  return fact;
}

MachineFact examine_memory() {
  const int64_t total = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE),
                available = available_memory();
  MachineFact fact{"memory",
                   fmt::format("{:.1f} GB, {:.1f} GB available", static_cast<double>(total) / kGB,
                               static_cast<double>(available) / kGB),
                   "",
                   {{"bytes", total}, {"available_bytes", available}}};
  int64_t least = available;
  if (const int64_t limit = group_limit("/sys/fs/cgroup/memory.max"); limit > 0) {
    fact.details["limit_bytes"] = limit;
    fact.text += fmt::format(", limited to {:.1f} GB by the control group", static_cast<double>(limit) / kGB);
    least = std::min(least, limit);
  }
  if (least < int64_t{2} << 30)
    fact.fix =
        "less than 2 GB: use a small model, and set engine.kv_memory_gb in the job so that keys and values "
        "fit";
  return fact;
}

/// The folder itself or the nearest one above it that is there: a run makes its output folder.
fs::path nearest_folder(const std::string& folder) {
  std::error_code ignored;
  fs::path path = fs::absolute(folder.empty() ? "." : folder, ignored).lexically_normal();
  while (!fs::exists(path, ignored) && path.has_relative_path()) path = path.parent_path();
  return path;
}

MachineFact examine_disk(const std::string& output) {
  const fs::path folder = nearest_folder(output);
  std::error_code error;
  const std::string shown = output == "."               ? "the current folder"
                            : fs::exists(output, error) ? output
                                                        : fmt::format("{} (for {}, which does not exist yet)",
                                                                      folder.string(), output);
  const fs::space_info space = fs::space(folder, error);
  if (error)
    return {"disk", fmt::format("the free space in {} cannot be read: {}", shown, error.message()), "", {}};
  const auto available = static_cast<double>(space.available);
  const bool writable = fs::is_directory(folder, error) && access(folder.c_str(), W_OK) == 0;
  MachineFact fact{"disk",
                   fmt::format("{:.1f} GB free in {}", available / kGB, shown),
                   "",
                   {{"folder", output}, {"free_bytes", space.available}, {"writable", writable}}};
  if (available < kGB) fact.fix = "less than 1 GB: set output.path of your jobs to a larger disk";
  if (!writable)
    fact.fix = fmt::format("{} is not writable; set output.path of your jobs to a folder that is", shown);
  return fact;
}

MachineFact examine_default_model() {
  std::string path = "build/models/smollm2.gguf";
  bool there = fs::is_regular_file(path);
  if (const std::string installed = find_installed_file("models/smollm2.gguf");
      !there && !installed.empty()) {
    path = installed;
    there = true;
  }
  return {"default model",
          there ? path : "not found",
          there ? ""
                : "the demo needs it: run tools/setup in the project's root, or set model.path to your own "
                  "model",
          {{"path", path}, {"present", there}}};
}

}  // namespace

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
  const bool known = cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
  const std::string runtime = cuda_version(CUDART_VERSION), newest = known ? cuda_version(driver) : "";
  MachineFact cuda{"CUDA", fmt::format("runtime {}, no driver", runtime), "", {{"runtime", runtime}}};
  if (known) cuda.text = fmt::format("runtime {}, driver for up to {}{}", runtime, newest, driver_release());
  cuda.details["driver"] = known ? nlohmann::ordered_json(newest) : nlohmann::ordered_json();
  facts.push_back(std::move(cuda));
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

std::string version_text() {
#ifdef SHEAF_WITH_CUDA
  const std::string cuda = cuda_build_text();
#else
  const std::string cuda = "no CUDA (built without nvcc): jobs run on the CPU";
#endif
  return fmt::format("sheaf {}\n{}", SHEAF_VERSION, cuda);
}

std::vector<MachineFact> examine_machine(const std::string& output) {
  std::vector<MachineFact> facts = {{"program", version_text(), "", {{"version", SHEAF_VERSION}}}};
  if (const size_t end = facts[0].text.find('\n'); end != std::string::npos)
    facts[0].text.replace(end, 1, "; ");
  facts.push_back(examine_processor());
  facts.push_back(examine_cores());
  facts.push_back(examine_memory());
  facts.push_back(examine_disk(output));
  for (MachineFact& gpu : examine_gpus()) facts.push_back(std::move(gpu));
  facts.push_back(examine_libraries());
  facts.push_back(examine_default_model());
  return facts;
}

}  // namespace sheaf

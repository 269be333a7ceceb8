#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine/backend.h"
#include "core/job/device.h"
#include "core/model/model.h"
#include "io/machine/machine.h"

namespace sheaf {

/// What backends should be; each kind reads what applies to it.
struct BackendOptions {
  std::vector<int> devices = {0};  ///< one for each backend; the CPU is one device
  int threads = 1;                 ///< CPU threads of all backends together
  Precision precision = Precision::automatic;
  bool fp8_keys = false;  ///< keys and values in FP8
  WeightStorage weights = WeightStorage::automatic;
  bool reproducible = false;
  bool reference = false;  ///< on the CPU: the plain loops
};

using Backends = std::vector<std::unique_ptr<Backend>>;

/// A kind of backend: where it computes, what it takes there, how it is made.
struct BackendKind {
  Device::Kind kind;
  std::string word;  ///< in engine.device
  bool gpu;
  std::string
      missing;  ///< why this program lacks it, "this program was built without CUDA"; empty: it does not

  std::vector<std::string> (*devices)();      ///< names of the machine's devices
  std::string (*driver_trouble)();            ///< why there is no device although there is a driver; or empty
  std::string (*device_trouble)(int device);  ///< why this program cannot compute on a device; or empty
  int64_t (*memory)(int device);              ///< bytes to divide: a GPU's free ones, all of a machine's
  int64_t (*pool_bytes)(int64_t memory);      ///< bytes for keys and values, where the job does not say
  Footprint (*footprint)(const ModelConfig& config, const BackendOptions& options);
  Backends (*make)(const Model& model, const BackendOptions& options);
  /// A backend with random weights, for timing.
  std::unique_ptr<Backend> (*make_random)(const ModelConfig& config, const BackendOptions& options,
                                          uint32_t seed);
  std::vector<MachineFact> (*examine)();  ///< for `sheaf doctor`
};

/// All kinds, those that the program was built without included. This table is the only place that knows
/// which these are.
std::span<const BackendKind> backend_kinds();
/// `kind`: not automatic.
const BackendKind& backend_kind(Device::Kind kind);

BackendKind cpu_kind();
/// What stands for CUDA in a program without it.
BackendKind missing_cuda_kind();

/// Whether NVIDIA's driver is loaded, asked without CUDA.
bool has_nvidia_driver();

// The build has either with_cuda.cc or without_cuda.cc (CMakeLists.txt), which say the following.

BackendKind cuda_kind();
/// The CUDA part of this build, for `sheaf --version`.
std::string cuda_part_text();
/// Adds the libraries that are opened when a GPU is used; `trouble` is why that failed.
void add_cuda_libraries(std::vector<std::pair<std::string, std::string>>& versions, std::string& trouble);

}  // namespace sheaf

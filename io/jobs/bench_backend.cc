#include "io/jobs/bench_backend.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/stopwatch.h"
#include "core/model/random_model.h"
#include "core/model/shapes.h"
#include "core/text/spelling.h"
#include "cpu/cpu_backend.h"
#include "io/model/hf_config.h"
#include "io/model/model_files.h"
#ifdef SHEAF_WITH_CUDA
#include "cuda/base/devices.h"
#include "cuda/cuda_backend.h"
#endif

namespace sheaf {
namespace {

constexpr uint32_t kSeed = 7;

/// The shape of random weights, and whether its family has biases.
struct Shape {
  ModelConfig config;
  bool biases = false;
};

Shape find_shape(const std::string& text) {
  const std::vector<std::string> names = shape_names();
  if (std::ranges::find(names, text) != names.end()) return {shape_by_name(text), false};
  std::filesystem::path path(text);
  if (std::filesystem::is_directory(path)) path /= "config.json";
  if (!std::filesystem::is_regular_file(path))
    refuse("--shape {}: this is neither a shape nor a config.json{}", shorten_text(text, 80),
           suggest_spelling(text, names));
  const FileConfig description = read_hf_config(path.string());
  return {description.config, description.family->qkv_bias};
}

/// The CUDA device to use, -1 for the CPU.
int choose_device(const Device& asked) {
  if (asked.kind == Device::Kind::cpu) return -1;
  if (asked.kind == Device::Kind::automatic) {
#ifdef SHEAF_WITH_CUDA
    if (!cuda_devices().empty()) return 0;
#endif
    return -1;
  }
#ifdef SHEAF_WITH_CUDA
  const int device = asked.index.value_or(0);
  const auto devices = static_cast<int>(cuda_devices().size());
  if (device >= devices)
    refuse("--device {}: this machine has {} CUDA device{}; use --device cpu for small shapes",
           device_text(asked), devices, devices == 1 ? "" : "s");
  if (const std::string trouble = cuda_device_trouble(device); !trouble.empty()) refuse("{}", trouble);
  return device;
#else
  refuse("--device {}: this program was built without CUDA; use --device cpu for small shapes",
         device_text(asked));
#endif
}

int64_t memory_bytes() {
  return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

/// fp32 weights and the packed copy that the quick backend makes of them must fit.
Model random_cpu_model(const std::string& name, int32_t layers) {
  Shape shape = find_shape(name);
  if (layers > 0) shape.config.layers = layers;
  const int64_t needed = 2 * random_model_bytes(shape.config);
  if (needed > memory_bytes() / 2)
    throw OutOfMemory(
        fmt::format("{}: random weights need {:.1f} GB, and this machine has {:.1f} GB; use a smaller shape",
                    name, static_cast<double>(needed) / 1e9, static_cast<double>(memory_bytes()) / 1e9),
        Fault::input);
  return make_random_model(shape.config, kSeed, shape.biases);
}

}  // namespace

ModelConfig read_shape(const std::string& shape) {
  return find_shape(shape).config;
}

BenchBackend::BenchBackend(const BenchModel& wanted) {
  {
    const Stopwatch watch(device_seconds_);
    device_ = choose_device(wanted.device);
#ifdef SHEAF_WITH_CUDA
    if (device_ >= 0) free_at_first_ = cuda_free_bytes(device_);
#endif
  }
  const Stopwatch watch(weights_seconds_);
  if (!wanted.path.empty()) model_ = load_model(wanted.path);
#ifdef SHEAF_WITH_CUDA
  if (device_ >= 0) {
    const CudaOptions options{device_, wanted.reproducible};
    if (wanted.path.empty()) {
      ModelConfig config = read_shape(wanted.shape);
      if (wanted.layers > 0) config.layers = wanted.layers;
      backend_ = make_random_cuda_backend(config, options, kSeed);
    } else {
      backend_ = make_cuda_backend(model_, options);
    }
    return;
  }
#endif
  if (wanted.path.empty()) model_ = random_cpu_model(wanted.shape, wanted.layers);
  backend_ = make_quick_backend(model_, std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
}

int64_t BenchBackend::kv_room() const {
#ifdef SHEAF_WITH_CUDA
  // The rest is for activations.
  if (device_ >= 0) return cuda_pool_bytes(cuda_free_bytes(device_));
#endif
  return memory_bytes() / 4;
}

int64_t BenchBackend::device_bytes() const {
#ifdef SHEAF_WITH_CUDA
  if (device_ >= 0) return free_at_first_ - cuda_free_bytes(device_);
#endif
  return 0;
}

}  // namespace sheaf

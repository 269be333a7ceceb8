#include "core/base/error.h"
#include "core/base/stopwatch.h"
#include "core/model/shapes.h"
#include "cpu/cpu_backend.h"
#include "cpu/large_buffer.h"
#include "io/base/process.h"
#include "io/jobs/bench.h"
#include "io/model/model_config.h"
#include "io/model/model_files.h"
#ifdef SHEAF_WITH_CUDA
#include "cuda/base/devices.h"
#include "cuda/cuda_backend.h"
#endif

namespace sheaf {
namespace {

constexpr uint32_t kSeed = 7;

FileConfig random_shape(const BenchModel& wanted) {
  FileConfig shape = read_model_config(wanted.shape, "--shape");
  if (wanted.layers > 0) shape.config.layers.resize(static_cast<size_t>(wanted.layers));
  return shape;
}

/// The CUDA device to use, -1 for the CPU.
int choose_timed_device(const Device& asked) {
  if (asked.kind == Device::Kind::cpu) return -1;
  const bool automatic = asked.kind == Device::Kind::automatic;
#ifdef SHEAF_WITH_CUDA
  const auto devices = static_cast<int>(cuda_devices().size());
  if (automatic) return devices > 0 ? 0 : -1;
  const int device = asked.index();
  if (device >= devices)
    refuse("--device {}: this machine has {} CUDA device{}; use --device cpu for small shapes",
           device_text(asked), devices, devices == 1 ? "" : "s");
  if (const std::string trouble = cuda_device_trouble(device); !trouble.empty()) refuse("{}", trouble);
  return device;
#else
  if (automatic) return -1;
  refuse("--device {}: this program was built without CUDA; use --device cpu for small shapes",
         device_text(asked));
#endif
}

Model random_cpu_model(const BenchModel& wanted) {
  const FileConfig shape = random_shape(wanted);
  if (const std::string trouble = random_weights(shape.config, false).trouble; !trouble.empty())
    throw OutOfMemory(fmt::format("{}: {}; use a smaller shape", wanted.shape, trouble), Fault::input);
  return make_random_model(shape.config, kSeed);
}

}  // namespace

RandomWeights random_weights(const ModelConfig& config, bool on_gpu) {
  if (on_gpu) return {random_model_bytes(config) / 2};  // bf16
  // fp32 weights and the packed copy that the quick backend makes of them must fit.
  RandomWeights weights{2 * random_model_bytes(config)};
  if (weights.bytes > machine_memory() / 2)
    weights.trouble =
        fmt::format("random weights need {:.1f} GB, and this machine has {:.1f} GB",
                    static_cast<double>(weights.bytes) / 1e9, static_cast<double>(machine_memory()) / 1e9);
  return weights;
}

BenchBackend::BenchBackend(const BenchModel& wanted) {
  {
    const Stopwatch watch(device_seconds_);
    device_ = choose_timed_device(wanted.device);
#ifdef SHEAF_WITH_CUDA
    if (device_ >= 0) free_at_first_ = cuda_free_bytes(device_);
#endif
  }
  if (wanted.dtype != Precision::automatic && only_on_gpu(wanted.dtype) != (device_ >= 0))
    refuse("--dtype {}: {}", word_of(wanted.dtype),
           device_ >= 0 ? "a GPU computes in bf16 or fp8; or use --device cpu"
                        : "the CPU computes in f32, int16 or int8; or use a GPU");
  if (device_ < 0 && wanted.weights == WeightStorage::packed)
    refuse("--packed: weights stay packed on a GPU only");
  if (device_ < 0 && wanted.fp8_keys) refuse("--kv-fp8: keys and values are FP8 on a GPU only");
  const Stopwatch watch(weights_seconds_);
  if (!wanted.path.empty()) model_ = load_model(wanted.path);
#ifdef SHEAF_WITH_CUDA
  if (device_ >= 0) {
    const CudaOptions options{device_, wanted.dtype == Precision::fp8, wanted.fp8_keys, wanted.weights,
                              wanted.reproducible};
    backend_ = wanted.path.empty() ? make_random_cuda_backend(random_shape(wanted).config, options, kSeed)
                                   : make_cuda_backend(model_, options);
    return;
  }
#endif
  if (wanted.path.empty()) model_ = random_cpu_model(wanted);
  backend_ = make_quick_backend(model_, usable_cores().threads(), wanted.dtype);
}

int64_t BenchBackend::kv_bytes() const {
#ifdef SHEAF_WITH_CUDA
  // The rest is for activations.
  if (device_ >= 0) return cuda_pool_bytes(cuda_free_bytes(device_));
#endif
  return machine_memory() / 4;
}

int64_t BenchBackend::device_bytes() const {
#ifdef SHEAF_WITH_CUDA
  if (device_ >= 0) return free_at_first_ - cuda_free_bytes(device_);
#endif
  return 0;
}

}  // namespace sheaf

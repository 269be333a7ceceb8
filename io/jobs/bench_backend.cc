#include <optional>

#include "core/base/error.h"
#include "core/base/stopwatch.h"
#include "core/model/shapes.h"
#include "cpu/large_buffer.h"
#include "io/base/process.h"
#include "io/jobs/bench.h"
#include "io/model/model_config.h"
#include "io/model/model_files.h"

namespace sheaf {
namespace {

constexpr uint32_t kSeed = 7;

FileConfig random_shape(const BenchModel& wanted) {
  FileConfig shape;
  if (wanted.made_up)
    shape.config = *wanted.made_up;
  else
    shape = read_model_config(wanted.shape, "--shape");
  if (wanted.layers > 0) shape.config.layers.resize(static_cast<size_t>(wanted.layers));
  return shape;
}

/// The GPU to use; none: the CPU.
std::optional<int> choose_timed_gpu(const Device& asked) {
  if (asked.kind == Device::Kind::cpu) return std::nullopt;
  const BackendKind& gpu = backend_kind(Device::Kind::cuda);
  const auto devices = static_cast<int>(gpu.devices().size());
  if (asked.kind == Device::Kind::automatic) return devices > 0 ? std::optional(0) : std::nullopt;
  if (!gpu.missing.empty())
    refuse("--device {}: {}; use --device cpu for small shapes", device_text(asked), gpu.missing);
  const int device = asked.index();
  if (device >= devices)
    refuse("--device {}: this machine has {} CUDA device{}; use --device cpu for small shapes",
           device_text(asked), devices, devices == 1 ? "" : "s");
  if (const std::string trouble = gpu.device_trouble(device); !trouble.empty()) refuse("{}", trouble);
  return device;
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
    const std::optional<int> gpu = choose_timed_gpu(wanted.device);
    kind_ = &backend_kind(gpu ? Device::Kind::cuda : Device::Kind::cpu);
    device_ = gpu.value_or(0);
    memory_at_first_ = kind_->memory(device_);
  }
  if (wanted.dtype != Precision::automatic && only_on_gpu(wanted.dtype) != on_gpu())
    refuse("--dtype {}: {}", word_of(wanted.dtype),
           on_gpu() ? "a GPU computes in bf16 or fp8; or use --device cpu"
                    : "the CPU computes in f32, int16 or int8; or use a GPU");
  if (!on_gpu() && wanted.weights == WeightStorage::packed)
    refuse("--packed: weights stay packed on a GPU only");
  if (!on_gpu() && wanted.fp8_keys) refuse("--kv-fp8: keys and values are FP8 on a GPU only");
  const Stopwatch watch(weights_seconds_);
  const BackendOptions options{.devices = {device_},
                               .threads = usable_cores().threads(),
                               .precision = wanted.dtype,
                               .fp8_keys = wanted.fp8_keys,
                               .weights = wanted.weights,
                               .reproducible = wanted.reproducible};
  if (!wanted.path.empty()) {
    backend_ = std::move(kind_->make(load_model(wanted.path), options).front());
    return;
  }
  const ModelConfig config = random_shape(wanted).config;
  if (const std::string trouble = random_weights(config, on_gpu()).trouble; !trouble.empty())
    throw OutOfMemory(fmt::format("{}: {}; use a smaller shape", wanted.shape, trouble), Fault::input);
  backend_ = kind_->make_random(config, options, kSeed);
}

int64_t BenchBackend::kv_bytes() const {
  const int64_t memory = kind_->memory(device_);
  return on_gpu() ? kind_->pool_bytes(memory) : memory / 4;
}

int64_t BenchBackend::device_bytes() const {
  return memory_at_first_ - kind_->memory(device_);
}

}  // namespace sheaf

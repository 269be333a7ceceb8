#pragma once
#include <functional>
#include <nlohmann/json.hpp>

#include "core/engine/backend.h"
#include "core/engine/engine.h"
#include "core/estimate/device_profile.h"
#include "core/job/device.h"
#include "core/job/job.h"
#include "core/job/words.h"
#include "io/files/workload.h"
#include "io/machine/backend_kinds.h"

namespace sheaf {

/// What `sheaf bench` computes with: the weights of a model, or random ones of a shape.
struct BenchModel {
  std::string shape;  ///< qwen3-8b, or a path
  std::string path;   ///< of real weights; empty: random ones
  Device device = {};
  bool reproducible = false;
  int32_t layers = 0;                               ///< of random weights, where not as the shape has them
  std::shared_ptr<const ModelConfig> made_up = {};  ///< random weights of this, in place of a shape
  Precision dtype = Precision::automatic;
  WeightStorage weights = WeightStorage::automatic;
  bool fp8_keys = false;
};

/// What random weights of a shape take.
struct RandomWeights {
  int64_t bytes = 0;
  std::string trouble = {};  ///< why they do not fit this machine; empty: they do, or a GPU is asked itself
};
RandomWeights random_weights(const ModelConfig& config, bool on_gpu);

/// A backend made ready for timing.
class BenchBackend {
 public:
  explicit BenchBackend(const BenchModel& wanted);

  Backend& backend() const { return *backend_; }
  bool on_gpu() const { return kind_->gpu; }
  const ModelConfig& config() const { return backend_->config(); }
  /// Bytes that a key/value pool may take.
  int64_t kv_bytes() const;
  /// Device memory taken since before the weights were made; 0 on the CPU.
  int64_t device_bytes() const;
  double device_seconds() const { return device_seconds_; }    ///< until the device answered
  double weights_seconds() const { return weights_seconds_; }  ///< to load or make the weights

 private:
  const BackendKind* kind_ = nullptr;
  int device_ = 0;
  int64_t memory_at_first_ = 0;  ///< bytes to be had on the device
  double device_seconds_ = 0, weights_seconds_ = 0;
  std::unique_ptr<Backend> backend_;
};

/// How a workload is packed.
struct BenchPacking {
  Job::Method method{.name = "ippd", .documents = 0, .prompt_tokens = 32768};
  int32_t window = Job::Engine().window;  ///< records planned together
};

/// The workload's prompts, by the planner of a run; refuses one that needs more than `context` positions.
std::vector<Stack> pack(const Workload& workload, const BenchPacking& packing, int32_t context);

/// Whether the method asks for all values of a document as one text.
bool asks_for_objects(const Job::Method& method);

/// Pages that the largest round of a stack takes.
int64_t pages_at_once(const Stack& stack, int32_t page_size);

/// Pages that all stacks and their later rounds would take together, nothing shared.
int64_t most_pages(const std::vector<Stack>& stacks, int32_t page_size);

/// One timed pass over a workload.
struct BenchRun {
  double engine_seconds = 0;  ///< to make the engine and its key/value pool
  double seconds = 0;
  EngineStats stats;
  int32_t pages = 0;  ///< pages of the pool, fewer than asked where memory was short
  TimedStages stages;
};

/// Decodes the stacks with an engine of its own, which finds nothing resident of the pass before.
BenchRun run_once(Backend& backend, const EngineOptions& options, std::vector<Stack> stacks);

struct BenchSettings {
  std::string workload;  ///< its file
  BenchModel model{"qwen3-8b", ""};
  BenchPacking packing;
  int32_t tokens = 0;  ///< tokens per step; 0: as the backend prefers
  int32_t repeat = 1;  ///< runs; the first of several only warms up
};

/// Times a workload: what `sheaf bench` prints (docs/performance.md).
nlohmann::ordered_json bench_workload(const BenchSettings& settings);

/// Attention alone: decoding tokens of `batch` sequences behind one prefix, each with keys of its own, as in
/// Hydragen's figures 4 and 7.
struct AttentionBench {
  std::vector<int32_t> batches = {16, 64, 256}, prefixes = {1024, 4096}, suffixes = {16, 256};
  int32_t heads = 8, kv_heads = 1, head_dim = 128;
};

/// Times a layer's attention with the prefix stored and read once, and with a copy of it for every sequence.
/// `progress` is told how far it is.
nlohmann::ordered_json bench_attention(
    const BenchModel& like, const AttentionBench& asked,
    const std::function<void(const std::string& text, bool last)>& progress);
/// What it found, for people.
std::string attention_text(const nlohmann::ordered_json& found);

/// Times made-up steps of the given shapes with random weights, on a device and in numbers `like` those
/// given; no shapes: such as suit the device. Takes a minute or two. `left_out` is told of a shape that does
/// not fit, `progress` how far it is with one.
DeviceProfile profile_device(const BenchModel& like, std::vector<std::string> shapes,
                             const std::function<void(const std::string& text)>& left_out,
                             const std::function<void(const std::string& text, bool last)>& progress);

}  // namespace sheaf

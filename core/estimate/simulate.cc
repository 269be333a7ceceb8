#include "core/estimate/simulate.h"

#include <algorithm>

#include "core/engine/backend.h"
#include "core/engine/engine.h"
#include "core/model/shapes.h"

namespace sheaf {
namespace {

constexpr double kContext = 0.6e9;    // what the driver and cuBLAS take for themselves
constexpr double kAssumedBits = 4.5;  // of a packed weight where no file says it: Q4_K
// Share of the memory's bandwidth at which packed weights are expanded, measured on an H200 with an 8B model
// in Q4_K.
constexpr double kExpandBf16 = 0.9, kExpandFp8 = 0.5;

/// Counts steps as a backend does that takes as many at once as the real one.
class CountedDevice final : public CountingBackend {
 public:
  CountedDevice(const ModelConfig& config, const MemoryPlan& memory, int32_t steps)
      : CountingBackend(config, memory.kv_bytes_per_token, memory.tokens_per_step), steps_(steps) {}
  int32_t steps_at_once() const override { return steps_; }
  /// Any of the allowed tokens, so that options of all lengths come up.
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float>) override {
    for (size_t i = 0; i < picked.size(); ++i) {
      const Pick& pick = batch.picks[i];
      picked[i] = {};
      if (pick.allowed_count == 0) continue;
      const auto nth = static_cast<int32_t>(pick.uniform * static_cast<float>(pick.allowed_count));
      picked[i].token =
          batch.allowed[static_cast<size_t>(pick.first_allowed + std::min(nth, pick.allowed_count - 1))];
    }
  }

 private:
  int32_t steps_;
};

double table(const ModelConfig& config) {
  return static_cast<double>(config.hidden) * config.vocab;
}
/// Weights of the layers, all experts counted.
double stored_weights(const ModelConfig& config) {
  return static_cast<double>(layer_weights(config) + idle_weights(config));
}
double parameters(const ModelConfig& config) {
  return stored_weights(config) + table(config) * (config.tied_output ? 1 : 2);
}

/// The weights as they lie on a GPU: bf16 or FP8 in the layers; or packed, if that was asked for or else they
/// would not fit.
void plan_gpu_weights(const EstimateCase& asked, MemoryPlan& plan) {
  const ModelConfig& config = asked.config;
  const bool fp8 = asked.hardware->wanted == Precision::fp8;
  const double bytes = fp8 ? 1 : 2, layers = stored_weights(config);
  plan.weights = bytes * layers + 2 * (parameters(config) - layers);
  const bool smaller = asked.stored_bits > 0 && asked.stored_bits < 8 * bytes;
  plan.packed = asked.weights == WeightStorage::packed ||
                (asked.weights == WeightStorage::automatic && smaller && plan.weights > plan.usable);
  if (!plan.packed) return;
  const double stored = (asked.stored_bits > 0 ? asked.stored_bits : kAssumedBits) / 8;
  // Gate and up are the largest matrices, one of which is expanded at a time; of experts, some at a time.
  const int64_t hidden = config.hidden, experts = 2 * hidden * config.experts.count * config.experts.ffn;
  const auto largest = static_cast<double>(
      std::max(2 * hidden * widest_mlp(config), expanded_values(experts, config.experts.count)));
  plan.weights = stored * layers + bytes * largest + 2 * table(config) +
                 (config.tied_output ? 0 : stored * table(config));
  const double weight_seconds =
      (stored + bytes) / (asked.hardware->bandwidth * (fp8 ? kExpandFp8 : kExpandBf16));
  plan.expand_seconds = weight_seconds * static_cast<double>(unrouted_weights(config));
  plan.expert_seconds = weight_seconds * static_cast<double>(expert_weights(config));
}

/// What a weight of the layers takes in a step: packed ones are read, written as they are multiplied, and
/// read again.
NumberBytes number_bytes(const EstimateCase& asked, const MemoryPlan& memory) {
  const Precision wanted = asked.hardware->wanted;
  const double width = asked.hardware->gpu ? (wanted == Precision::fp8 ? 1 : 2)
                                           : (wanted == Precision::int8    ? 1
                                              : wanted == Precision::int16 ? 2
                                                                           : 4);
  NumberBytes bytes{width, asked.hardware->gpu ? 2 : width, asked.hardware->gpu ? 2.0 : 4.0,
                    static_cast<double>(memory.kv_bytes_per_token)};
  if (memory.packed)
    bytes.weight = (asked.stored_bits > 0 ? asked.stored_bits : kAssumedBits) / 8 + 2 * width;
  return bytes;
}

/// Tells two observers of each step.
class BothObservers final : public StepObserver {
 public:
  BothObservers(StepObserver& first, StepObserver* second) : first_(first), second_(second) {}
  void start(const StepBatch& batch) override {
    first_.start(batch);
    if (second_) second_->start(batch);
  }
  void finish() override {
    first_.finish();
    if (second_) second_->finish();
  }

 private:
  StepObserver& first_;
  StepObserver* second_;
};

}  // namespace

MemoryPlan plan_memory(const EstimateCase& asked) {
  const ModelConfig& config = asked.config;
  const Hardware& hardware = *asked.hardware;
  MemoryPlan plan;
  const bool fp8_keys = asked.engine.kv_dtype == KvPrecision::fp8;
  const Footprint footprint =
      hardware.gpu ? cuda_footprint(config, fp8_keys) : cpu_footprint(config, hardware.wanted);
  plan.kv_bytes_per_token = footprint.kv_bytes_per_token;
  plan.tokens_per_step =
      asked.engine.tokens_per_step > 0 ? asked.engine.tokens_per_step : footprint.preferred_tokens;
  if (hardware.gpu) {
    plan.usable = hardware.memory - kContext;
    plan_gpu_weights(asked, plan);
    plan.activations = static_cast<double>(cuda_step_bytes(
        config, plan.tokens_per_step, std::min(plan.tokens_per_step, kCudaPicksAtOnce), fp8_keys));
    plan.pool =
        static_cast<double>(cuda_pool_bytes(static_cast<int64_t>(std::max(0.0, plan.usable - plan.weights))));
  } else {  // the weights are packed again; the embedding stays as it is
    const double bytes = hardware.wanted == Precision::int8 ? 1 : hardware.wanted == Precision::int16 ? 2 : 4;
    plan.weights = bytes * parameters(config);
    plan.activations = static_cast<double>(cpu_step_bytes(config, plan.tokens_per_step));
    plan.usable = hardware.memory;
    plan.pool = static_cast<double>(cpu_pool_bytes(static_cast<int64_t>(hardware.memory)));
  }
  if (asked.engine.kv_memory_gb > 0)
    plan.pool = asked.engine.kv_memory_gb * static_cast<double>(int64_t{1} << 30);
  plan.pool = std::max(0.0, std::min(plan.pool, plan.usable - plan.weights - plan.activations / 4));
  const double pages = plan.pool / (static_cast<double>(plan.kv_bytes_per_token) * kPageSize);
  plan.pages = static_cast<int32_t>(std::clamp(pages, 1.0, static_cast<double>(INT32_MAX / kPageSize)));
  return plan;
}

SimulatedRun simulate(const EstimateCase& asked, const MemoryPlan& memory, int32_t answer_tokens,
                      std::vector<Stack> stacks) {
  CountedDevice counted(asked.config, memory, asked.hardware->gpu ? 2 : 1);
  DeviceModel device = asked.hardware->device;
  device.each_step = memory.expand_seconds;
  device.each_expert = memory.expert_seconds;
  PredictedTime time(counted.config(), device);
  PhaseCount phases(counted.config(), number_bytes(asked, memory));
  BothObservers observer(time, asked.by_phase ? &phases : nullptr);
  EngineOptions options;
  options.tokens_per_step = memory.tokens_per_step;
  // Of a pool that could hold all prompts at once the rest is never touched, and listing its pages takes
  // time.
  int64_t pages = 1;
  const auto count = [&](const Stack& stack) {
    for (const int32_t keys : stack.most_keys()) pages += pages_for(keys);
  };
  for (const Stack& stack : stacks) {
    count(stack);
    for (auto next = stack.next; next;) {
      const Stack later = next->expected();
      count(later);
      next = later.next;
    }
  }
  options.pages = static_cast<int32_t>(std::min<int64_t>(memory.pages, pages));
  options.page_size = kPageSize;
  options.prompts = asked.engine.prompts;
  options.assumed_tokens = answer_tokens;
  options.expected_rounds = true;
  options.observer = &observer;
  const StopRules rules(asked.config.vocab, {});
  Engine engine(counted, rules, options);
  size_t next = 0;
  engine.run(
      [&]() -> std::optional<Stack> {
        if (next == stacks.size()) return std::nullopt;
        return std::move(stacks[next++]);
      },
      [](Stack&&, std::vector<Answer>&&) {});
  return {time.seconds(), time.host_seconds(), time.decode_seconds(),
          time.stages(),  engine.stats(),      phases.table()};
}

}  // namespace sheaf

#include <gtest/gtest.h>

#include "core/engine/backend.h"
#include "core/engine/engine.h"
#include "core/estimate/device_model.h"
#include "core/estimate/simulate.h"
#include "cpu/cpu_backend.h"
#include "tests/estimate/made_up_device.h"

namespace sheaf {
namespace {

using test::MadeUpDevice;

const DeviceModel& device() {
  static const DeviceModel model = fit_device(MadeUpDevice::profile());
  return model;
}

TEST(PredictedTime, HostWorkPassesWhileAnotherStepRuns) {
  const ModelConfig config = shape_by_name("qwen3-8b");
  const StepBatch batch = make_probe_batch({{{1, 0, 1, 0, 4096}}}, 16);
  PredictedTime alone(config, device()), overlapped(config, device());
  for (int i = 0; i < 10; ++i) {
    alone.start(batch);
    alone.finish();
  }
  overlapped.start(batch);
  for (int i = 0; i < 9; ++i) {
    overlapped.start(batch);
    overlapped.finish();
  }
  overlapped.finish();
  const double host = device().host_seconds(count_step(batch, config));
  EXPECT_DOUBLE_EQ(alone.stages().total(), overlapped.stages().total());
  EXPECT_NEAR(alone.seconds(), alone.stages().total() + 10 * host, 1e-9);
  EXPECT_NEAR(overlapped.seconds(), overlapped.stages().total() + host, 1e-9);
  EXPECT_NEAR(overlapped.host_seconds(), host, 1e-9);
}

TEST(PredictedTime, DecodeSecondsAreTheShareOfDecodeRows) {
  const ModelConfig config = shape_by_name("qwen3-1.7b");
  PredictedTime time(config, device());
  time.start(make_probe_batch({{{1, 0, 100, 10, 1}, {1, 0, 1, 0, 300}}, 0}, 16));
  time.finish();
  EXPECT_NEAR(time.decode_seconds(), time.stages().total() / 4, 1e-12);
}

TEST(PredictedTime, SumsTheStepsOfAnEngine) {
  const ModelConfig config = shape_by_name("qwen3-0.6b");
  CountingBackend backend(config, 1000, 64);
  PredictedTime time(config, device());
  const StopRules rules(config.vocab, {});
  const auto seconds_of = [&](int32_t answers) {
    EngineOptions options;
    options.assumed_tokens = 4;
    options.prompts = 1;  // one after the other, so that the steps of all are alike
    options.observer = &time;
    Engine engine(backend, rules, options);
    const double before = time.seconds();
    int32_t asked = 0;
    engine.run(
        [&]() -> std::optional<Stack> {
          if (asked++ == answers) return std::nullopt;
          Stack stack;
          stack.segments.emplace_back().tokens = Tokens(8, 5);
          stack.slots.emplace_back().max_tokens = 4;
          return stack;
        },
        [](Stack&&, std::vector<Answer>&&) {});
    return time.seconds() - before;
  };
  const double one = seconds_of(1);
  EXPECT_GT(one, 0);
  EXPECT_NEAR(seconds_of(3), 3 * one, 1e-9);
}

TEST(PlanMemory, HoldsWeightsAndPoolOfTheEngine) {
  Hardware hardware;
  hardware.memory = 141e9;
  const MemoryPlan plan = plan_memory({"qwen3-8b", shape_by_name("qwen3-8b"), &hardware});
  EXPECT_NEAR(plan.weights, 16.4e9, 0.1e9);
  EXPECT_EQ(plan.kv_bytes_per_token, 147456);
  EXPECT_TRUE(plan.fits());
  EXPECT_NEAR(plan.pool, 0.8 * (141e9 - 0.6e9 - plan.weights), 1e6);
  hardware.memory = 48e9;
  EXPECT_FALSE(plan_memory({"qwen3-32b", shape_by_name("qwen3-32b"), &hardware}).fits());
  EXPECT_TRUE(plan_memory({"qwen3-14b", shape_by_name("qwen3-14b"), &hardware}).fits());
}

TEST(PlanMemory, CountsKeysAndRowsAsTheBackendsDo) {
  Hardware gpu, cpu;
  gpu.memory = cpu.memory = 141e9;
  cpu.gpu = false;
  for (const char* shape : {"smollm2-135m", "qwen3-8b", "llama-3.2-1b"}) {
    const ModelConfig config = shape_by_name(shape);
    const MemoryPlan on_cpu = plan_memory({shape, config, &cpu});
    EXPECT_EQ(on_cpu.kv_bytes_per_token, cpu_footprint(config).kv_bytes_per_token);
    EXPECT_EQ(on_cpu.tokens_per_step, cpu_footprint(config).preferred_tokens);
    const MemoryPlan on_gpu = plan_memory({shape, config, &gpu});
    EXPECT_EQ(on_gpu.kv_bytes_per_token, cuda_footprint(config).kv_bytes_per_token);
    EXPECT_EQ(on_gpu.tokens_per_step, cuda_footprint(config).preferred_tokens);
  }
}

}  // namespace
}  // namespace sheaf

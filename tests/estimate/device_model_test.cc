#include "core/estimate/device_model.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/estimate/made_up_device.h"

namespace sheaf {
namespace {

using test::MadeUpDevice;

const DeviceModel& fitted() {
  static const DeviceModel model = fit_device(MadeUpDevice::profile());
  return model;
}

StepCounts counts_of(std::vector<ProbePart> parts, const ModelConfig& config) {
  return count_step(make_probe_batch({std::move(parts)}, 16), config);
}

TEST(StepCounts, ProbeBatchHasItsRowsLooksAndPicks) {
  // Two groups of three rows that decode behind 100 keys with 10 of their own, and a prompt of 50.
  const StepBatch batch = make_probe_batch({{{2, 100, 3, 10, 1}, {1, 0, 1, 0, 50}}}, 16);
  EXPECT_EQ(batch.rows(), 56);
  EXPECT_EQ(batch.decode_tokens, 6);
  EXPECT_EQ(batch.picks.size(), 7u);
  const ModelConfig config = shape_by_name("qwen3-8b");
  const StepCounts counts = count_step(batch, config);
  ASSERT_EQ(counts.attention.size(), 1u);
  EXPECT_EQ(counts.attention[0].layers, 36);
  EXPECT_EQ(counts.looks, 6 + 6 + 50);
  EXPECT_EQ(counts.attention[0].keys, 2 * 100 + 6 * 11 + 50);
  EXPECT_EQ(counts.attention[0].pairs, 4 * (6 * 100 + 6 * 11 + 50 * 51 / 2));
  // A block of 64 queries for three rows of four heads; the prompt's 200 queries take four blocks.
  EXPECT_EQ(counts.attention[0].cells, 64 * (2 * 100 + 6 * 11) + 4 * (50 * 51 / 2) * 256 / 200);
}

TEST(StepCounts, AttentionIsCountedByTheWindowsOfTheLayers) {
  ModelConfig config = shape_by_name("qwen3-8b");
  config.layers.assign(6, {.window = 512});
  config.layers[5].window = 0;
  const int32_t group = config.heads / config.kv_heads;
  // A prompt of 4,000 tokens, one whose last 600 are new, and ten answers behind 4,000 shared tokens with 30
  // of their own.
  const std::vector<ProbePart> parts{{1, 4000, 10, 30, 1}, {1, 0, 1, 0, 4000}, {1, 0, 1, 3400, 600}};
  const StepCounts counts = counts_of(parts, config);
  ASSERT_EQ(counts.attention.size(), 2u);
  for (const AttentionCounts& each : counts.attention) {
    const bool windowed = each.layers == 5;
    EXPECT_EQ(each.layers, windowed ? 5 : 1);
    const int64_t window = windowed ? 512 : 1 << 30;
    double pairs = 0;
    for (const ProbePart& part : parts)
      for (int32_t run = 0; run < part.runs; ++run)
        for (int64_t row = 0; row < part.rows; ++row) {
          const int64_t position = part.trunk + part.own + row;
          for (int64_t key = 0; key <= position; ++key)
            if (key > position - window) pairs += group;
        }
    EXPECT_EQ(each.pairs, pairs);
    // A span is read once: the shared one's last 481 keys that the answers still see, their own, the whole
    // prompt, and what the first of the 600 tokens sees and all after it.
    EXPECT_EQ(each.keys, windowed ? 481 + 10 * 31 + 4000 + (600 + 511) : 4000 + 10 * 31 + 4000 + 4000);
    EXPECT_EQ(each.spans, 1 + 10 + 1 + 1);
  }
  EXPECT_EQ(counts.looks, 2 * (10 + 10 + 4000 + 600));
  // Answers that are further away than the window do not see the shared span there at all.
  const StepCounts far = counts_of({{1, 4000, 2, 600, 1}}, config);
  EXPECT_EQ(far.attention[0].spans, 3);
  EXPECT_EQ(far.attention[1].spans, 2);
  EXPECT_EQ(far.attention[1].keys, 2 * 512);
  // The layers with windows are the quicker, and a plain model the slower.
  ModelConfig plain = config;
  plain.layers.assign(6, {});
  EXPECT_LT(fitted().attention_seconds(config, counts),
            fitted().attention_seconds(plain, counts_of(parts, plain)));
}

TEST(StepCounts, PicksCanBeFew) {
  const StepBatch batch = make_probe_batch({{{1, 0, 100, 0, 1}}, 3}, 16);
  ASSERT_EQ(batch.picks.size(), 3u);
  EXPECT_EQ(batch.picks.front().row, 97);
}

TEST(Search, FindsTheMinimum) {
  const auto found = least({1, 1, 1}, [](const std::vector<double>& x) {
    const double a = x[0] - 3, b = x[1] - 0.02, c = x[2];
    return a * a + 1e4 * b * b + c * c;
  });
  EXPECT_NEAR(found[0], 3, 0.05);
  EXPECT_NEAR(found[1], 0.02, 0.0005);
  EXPECT_EQ(found[2], 0);
}

TEST(DeviceModel, FindsTheRooflineItWasMeasuredFrom) {
  EXPECT_NEAR(fitted().peak_flops, MadeUpDevice::kFlops, 0.01 * MadeUpDevice::kFlops);
  EXPECT_NEAR(fitted().peak_weights, MadeUpDevice::kBytes / 2, 0.01 * MadeUpDevice::kBytes);
  EXPECT_LT(fitted().error, 0.05);
}

TEST(DeviceModel, PredictsStepsAndShapesItHasNotSeen) {
  for (const char* shape : {"qwen3-1.7b", "qwen3-4b", "llama-3-8b"}) {
    const ModelConfig config = shape_by_name(shape);
    for (const StepCounts& counts :
         {counts_of({{1, 0, 5, 100, 1}}, config), counts_of({{30, 300, 10, 7, 1}, {3, 0, 1, 0, 700}}, config),
          counts_of({{1, 0, 1, 0, 6000}}, config), counts_of({{1, 6000, 1, 0, 5000}}, config)}) {
      const double ideal = MadeUpDevice::step(config, counts).total();
      EXPECT_NEAR(fitted().step(config, counts).total(), ideal, 0.12 * ideal)
          << shape << " " << counts.tokens;
      EXPECT_NEAR(fitted().host_seconds(counts), MadeUpDevice::host(counts),
                  0.1 * MadeUpDevice::host(counts));
    }
  }
}

TEST(DeviceModel, AStepOfNothingTakesNoTime) {
  EXPECT_EQ(fitted().step(shape_by_name("qwen3-8b"), {}).total(), 0);
}

TEST(DeviceModel, OtherPeaksMoveWhatTheyBind) {
  const ModelConfig config = shape_by_name("qwen3-8b");
  const StepCounts many = counts_of({{1, 0, 4096, 0, 1}}, config), one = counts_of({{1, 0, 1, 0, 1}}, config);
  const DeviceModel half_flops = fitted().scaled(0.5, 1), half_bytes = fitted().scaled(1, 0.5);
  const auto products = [&](const DeviceModel& model, const StepCounts& counts) {
    return model.step(config, counts).products;
  };
  EXPECT_NEAR(products(half_flops, many) / products(fitted(), many), 2, 0.02);
  EXPECT_NEAR(products(half_bytes, many) / products(fitted(), many), 1, 0.02);
  EXPECT_NEAR(products(half_flops, one) / products(fitted(), one), 1, 0.02);
  EXPECT_NEAR(products(half_bytes, one) / products(fitted(), one), 2, 0.02);
}

TEST(DeviceModel, AStepWhoseStageWasLostInTheNoiseIsLeftOut) {
  DeviceProfile profile = MadeUpDevice::profile();
  profile.measurements[5].device.products = 0;
  const DeviceModel model = fit_device(profile);
  EXPECT_NEAR(model.peak_flops, MadeUpDevice::kFlops, 0.01 * MadeUpDevice::kFlops);
  const ModelConfig config = shape_by_name("qwen3-0.6b");
  const StepCounts counts = counts_of({{1, 0, 32, 0, 1}}, config);
  const double ideal = MadeUpDevice::step(config, counts).total();
  EXPECT_NEAR(model.step(config, counts).total(), ideal, 0.12 * ideal);
}

TEST(DeviceModel, RefusesAProfileWithoutBareSteps) {
  DeviceProfile profile = MadeUpDevice::profile();
  std::erase_if(profile.measurements, [](const Measurement& m) { return m.probe.parts.front().own == 0; });
  EXPECT_THROW(fit_device(profile), Error);
}

}  // namespace
}  // namespace sheaf

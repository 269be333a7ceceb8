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

StepCounts counts_of(std::vector<ProbePart> parts, int32_t group) {
  return count_step(make_probe_batch({std::move(parts)}, 16), group);
}

TEST(StepCounts, ProbeBatchHasItsRowsLooksAndPicks) {
  // Two groups of three rows that decode behind 100 keys with 10 of their own, and a prompt of 50.
  const StepBatch batch = make_probe_batch({{{2, 100, 3, 10, 1}, {1, 0, 1, 0, 50}}}, 16);
  EXPECT_EQ(batch.rows(), 56);
  EXPECT_EQ(batch.decode_tokens, 6);
  EXPECT_EQ(batch.picks.size(), 7u);
  const StepCounts counts = count_step(batch, 4);
  EXPECT_EQ(counts.looks, 6 + 6 + 50);
  EXPECT_EQ(counts.keys, 2 * 100 + 6 * 11 + 50);
  EXPECT_EQ(counts.pairs, 4 * (6 * 100 + 6 * 11 + 50 * 51 / 2));
  // A block of 64 queries for three rows of four heads; the prompt's 200 queries take four blocks.
  EXPECT_EQ(counts.cells, 64 * (2 * 100 + 6 * 11) + 4 * (50 * 51 / 2) * 256 / 200);
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
    const int32_t group = config.heads / config.kv_heads;
    for (const StepCounts& counts :
         {counts_of({{1, 0, 5, 100, 1}}, group), counts_of({{30, 300, 10, 7, 1}, {3, 0, 1, 0, 700}}, group),
          counts_of({{1, 0, 1, 0, 6000}}, group), counts_of({{1, 6000, 1, 0, 5000}}, group)}) {
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
  const StepCounts many = counts_of({{1, 0, 4096, 0, 1}}, 4), one = counts_of({{1, 0, 1, 0, 1}}, 4);
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
  const StepCounts counts = counts_of({{1, 0, 32, 0, 1}}, 2);
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

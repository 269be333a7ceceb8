// Estimates for mixtures of experts.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>

#include "core/estimate/estimate.h"
#include "core/estimate/sweep.h"
#include "core/model/work.h"
#include "io/estimate/inputs.h"
#include "tests/app/program.h"
#include "tests/estimate/listed_hardware.h"
#include "tests/estimate/made_up_device.h"

namespace sheaf {
namespace {

using test::MadeUpDevice;

TEST(ExpertsHit, IsWhatDrawingThemGivesOnAverage) {
  std::mt19937 random(1);
  for (const auto& [count, per_token, tokens] :
       {std::tuple{8, 2, 3}, {64, 8, 20}, {128, 8, 100}, {4, 4, 1}}) {
    const Experts experts{.count = count, .per_token = per_token};
    constexpr int kRounds = 2000;
    size_t hit = 0;
    std::vector<int> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    for (int round = 0; round < kRounds; ++round) {
      std::set<int> seen;
      for (int token = 0; token < tokens; ++token) {
        std::ranges::shuffle(order, random);
        seen.insert(order.begin(), order.begin() + per_token);
      }
      hit += seen.size();
    }
    EXPECT_NEAR(experts_hit(experts, tokens), static_cast<double>(hit) / kRounds, 0.01 * count);
  }
  EXPECT_EQ(experts_hit({}, 5), 0);
}

constexpr double kExpertShare = 0.6;  // of the made-up device's peaks that products of experts reach

/// A step of the made-up device with experts, counted here from their sizes.
StageSeconds step_with_experts(const ModelConfig& config, const StepCounts& counts) {
  const double layers = config.layer_count(), hidden = config.hidden, tokens = counts.tokens;
  const Experts& experts = config.experts;
  const double one = 3 * hidden * experts.ffn;
  const double others =
      hidden * config.head_dim * (2 * config.heads + 2 * config.kv_heads) + hidden * experts.count;
  const double hit =
      experts.count * (1 - std::pow(1 - static_cast<double>(experts.per_token) / experts.count, tokens));
  StageSeconds seconds = MadeUpDevice::step(config, counts);
  seconds.products = layers * (MadeUpDevice::product(others, tokens) +
                               std::max(2 * tokens * experts.per_token * one / MadeUpDevice::kFlops,
                                        2 * hit * one / MadeUpDevice::kBytes) /
                                   kExpertShare);
  return seconds;
}

StepCounts step_counts(std::vector<ProbePart> parts, const ModelConfig& config) {
  return count_step(make_probe_batch({std::move(parts)}, 16), config);
}

const DeviceModel& with_experts() {
  static const DeviceModel model = [] {
    DeviceProfile profile = MadeUpDevice::profile();
    for (const char* shape : {"qwen3-30b-a3b", "olmoe-1b-7b"}) {
      const ModelConfig config = shape_by_name(shape);
      for (const ListedProbe& listed : probes_for_gpu()) {
        const StepCounts counts = count_step(make_probe_batch(listed.probe, 16), config);
        profile.measurements.push_back({shape, listed.probe, step_with_experts(config, counts),
                                        MadeUpDevice::host(counts), listed.kind == ProbeKind::held_out});
      }
    }
    return fit_device(profile);
  }();
  return model;
}

TEST(DeviceModelOfExperts, PredictsShapesAndStepsItHasNotSeen) {
  EXPECT_LT(with_experts().expert_error, 0.1);
  ModelConfig other = shape_by_name("qwen3-30b-a3b");
  other.experts.count = 64;
  other.experts.per_token = 4;
  other.experts.ffn = 900;
  for (const ModelConfig& config : {other, shape_by_name("qwen3-30b-a3b"), shape_by_name("olmoe-1b-7b")})
    for (const StepCounts& counts :
         {step_counts({{1, 0, 3, 100, 1}}, config), step_counts({{1, 0, 60, 100, 1}}, config),
          step_counts({{30, 300, 10, 7, 1}, {3, 0, 1, 0, 700}}, config),
          step_counts({{1, 0, 1, 0, 6000}}, config)}) {
      const double ideal = step_with_experts(config, counts).total();
      EXPECT_NEAR(with_experts().step(config, counts).total(), ideal, 0.15 * ideal)
          << config.experts.count << " experts, " << counts.tokens << " tokens";
    }
}

TEST(DeviceModelOfExperts, LeavesDensePredictionsAsTheyWere) {
  const DeviceModel dense = fit_device(MadeUpDevice::profile());
  const ModelConfig config = shape_by_name("qwen3-4b");
  const StepCounts counts = step_counts({{1, 0, 1, 0, 3000}}, config);
  EXPECT_EQ(with_experts().step(config, counts).products, dense.step(config, counts).products);
  EXPECT_EQ(with_experts().widened(0.1, config), 0.1);
  EXPECT_TRUE(dense.measured_experts(config));
}

TEST(DeviceModelOfExperts, WithoutAMeasurementDenseEfficiencyStandsAndTheErrorIsWider) {
  const DeviceModel dense = fit_device(MadeUpDevice::profile());
  const ModelConfig config = shape_by_name("qwen3-30b-a3b");
  EXPECT_FALSE(dense.measured_experts(config));
  EXPECT_TRUE(with_experts().measured_experts(config));
  EXPECT_GE(dense.widened(0.1, config), 0.4);
  EXPECT_LT(with_experts().widened(0.1, config), 0.15);
  // The experts of the made-up device are slower than its dense products.
  const StepCounts counts = step_counts({{1, 0, 1, 0, 6000}}, config);
  const double ratio =
      with_experts().expert_seconds(config, counts.tokens) / dense.expert_seconds(config, counts.tokens);
  EXPECT_NEAR(ratio, 1 / kExpertShare, 0.1);
}

TEST(DeviceModelOfExperts, FewTokensReadOnlyTheExpertsThatTheyChoose) {
  const ModelConfig config = shape_by_name("qwen3-30b-a3b");
  const double one = with_experts().expert_seconds(config, 1),
               all = with_experts().expert_seconds(config, 300);
  EXPECT_NEAR(all / one, 128.0 / 8, 0.5);
}

EstimateCase expert_case(const char* shape, const char* hardware, const HardwareList& list) {
  return {shape, shape_by_name(shape), &list.find(hardware)};
}

TEST(MemoryOfExperts, CountsAllOfThem) {
  const HardwareList& bf16 = test::listed_hardware();
  EstimateCase small = expert_case("qwen3-30b-a3b", "l40s", bf16);
  EXPECT_NEAR(plan_memory(small).weights / 1e9, 2 * 30.53, 0.1);
  EXPECT_FALSE(plan_memory(small).fits());
  small.weights = WeightStorage::packed;
  EXPECT_TRUE(plan_memory(small).fits());
  // Q4_K in the layers and the output projection, the embedding in bf16, and room for some of a layer's
  // experts.
  EXPECT_NEAR(plan_memory(small).weights / 1e9, 30.2 * 4.5 / 8 + 0.62 + 0.27, 0.1);
  Job::ModelPart part;
  part.dtype = Precision::fp8;
  const HardwareList fp8 = test::hardware_for(part);
  const EstimateCase narrow = expert_case("qwen3-30b-a3b", "l40s", fp8);
  EXPECT_TRUE(plan_memory(narrow).fits());
  EXPECT_NEAR(plan_memory(narrow).weights / 1e9, 29.9 + 1.24, 0.2);
  for (const HardwareList* list : {&bf16, &fp8}) {
    const EstimateCase large = expert_case("qwen3-235b-a22b", "h200", *list);
    EXPECT_FALSE(plan_memory(large).fits());
    EXPECT_GT(plan_memory(large).weights, 235e9);
  }
  const EstimateCase cpu = expert_case("qwen3-30b-a3b", "cpu", bf16);
  EXPECT_NEAR(plan_memory(cpu).weights / 1e9, 4 * 30.53, 0.2);
}

TEST(MemoryOfExperts, GptOssKeepsItsOwnBitsWhereItMust) {
  const HardwareList& list = test::listed_hardware();
  const auto plan = [&](const char* shape) {
    EstimateCase asked = expert_case(shape, "h200", list);
    asked.stored_bits = describe_for_estimate(shape).stored_bits;
    EXPECT_GT(asked.stored_bits, 4.25);  // experts have so many, the rest 16
    EXPECT_LT(asked.stored_bits, 5);
    return plan_memory(asked);
  };
  const MemoryPlan small = plan("gpt-oss-20b"), large = plan("gpt-oss-120b");
  EXPECT_FALSE(small.packed);
  EXPECT_NEAR(small.weights / 1e9, 2 * 20.9, 0.2);
  EXPECT_TRUE(large.packed);
  EXPECT_TRUE(large.fits());
  EXPECT_GT(int64_t{large.pages} * kPageSize, 200'000);
}

TEST(MemoryOfExperts, PackedOnesAreExpandedWhereATokenChoseThem) {
  EstimateCase asked = expert_case("qwen3-30b-a3b", "h200", test::listed_hardware());
  asked.weights = WeightStorage::packed;
  const MemoryPlan plan = plan_memory(asked);
  const double all = plan.expand_seconds + 48 * 128 * plan.expert_seconds;
  EXPECT_NEAR(all, (4.5 / 8 + 2) * 29.9e9 / (4.8e12 * 0.9), 0.01 * all);
  DeviceModel model = with_experts();
  const StepCounts counts = step_counts({{1, 0, 1, 0, 1}}, asked.config);
  const double before = model.step(asked.config, counts).products;
  model.each_expert = plan.expert_seconds;
  EXPECT_NEAR(model.step(asked.config, counts).products - before, 48 * 8 * plan.expert_seconds,
              1e-6 * before);
}

TEST(EstimateOfExperts, SaysThatTheirProductsWereNotMeasured) {
  Hardware hardware;
  hardware.device = fit_device(MadeUpDevice::profile());
  const ModelConfig config = shape_by_name("qwen3-30b-a3b");
  const std::string said = "products of experts were not measured there";
  EXPECT_NE(error_text(hardware, config).find(said), std::string::npos);
  EXPECT_EQ(error_text(hardware, shape_by_name("qwen3-8b")).find(said), std::string::npos);
  hardware.device = with_experts();
  EXPECT_EQ(error_text(hardware, config).find(said), std::string::npos);
}

TEST(EstimateOfExperts, RunsFromTheCommandLine) {
  const TempFolder scratch;
  const std::string lengths =
      " --document-tokens 178 --questions 8.7 --question-tokens 12.6 --answer-tokens 3.9 --records 1365 "
      "--json";
  const auto ran = [&](const std::string& more) {
    return test::run_sheaf(scratch, "estimate --model " + more + lengths);
  };
  const auto json_of = [&](const std::string& more) {
    const auto result = ran(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  };
  for (const char* more : {" --dtype fp8", " --packed"}) {
    const auto each = json_of("qwen3-30b-a3b --hardware l40s" + std::string(more));
    EXPECT_LT(each["memory_gb"]["weights"].get<double>(), 40) << more;
    EXPECT_GT(each["seconds"]["work"].get<double>(), 0) << more;
  }
  // A model on each device: eight of them do not hold what one does not, and with fewer bits each holds it.
  for (const char* devices : {"", " --devices 8"}) {
    const auto refused = ran("qwen3-235b-a22b --hardware h200" + std::string(devices));
    EXPECT_EQ(refused.exit_code, 2);
    for (const char* part :
         {"qwen3-235b-a22b does not fit h200: it needs 470.", "every device holds the whole model",
          "it fits with --packed, from a file with 4-bit weights (133.4 GB): add it to see what that costs"})
      EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
  }
  const auto one = json_of("qwen3-235b-a22b --hardware h200 --packed"),
             eight = json_of("qwen3-235b-a22b --hardware h200 --packed --devices 8");
  EXPECT_NEAR(one["seconds"]["work"].get<double>() / eight["seconds"]["work"].get<double>(), 8, 1.5);
}

}  // namespace
}  // namespace sheaf

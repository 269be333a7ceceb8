// FLOPs and bytes by phase: their sums are what the engine, the graphs and the model of a device count.
#include "core/estimate/phases.h"

#include <gtest/gtest.h>

#include "core/estimate/estimate.h"
#include "core/model/shapes.h"
#include "core/model/work.h"
#include "io/estimate/inputs.h"
#include "tests/estimate/listed_hardware.h"

namespace sheaf {
namespace {

using test::listed_hardware;

EstimateCase case_of(const char* method, const char* shape) {
  EstimateCase each{shape, shape_by_name(shape), &listed_hardware().find("h200")};
  each.method.name = method;
  each.by_phase = true;
  return each;
}

PlannedRecords prompts(const EstimateCase& each) {
  auto bin = std::make_shared<BinParts>();
  bin->instruction = make_up_tokens(50);
  std::vector<ReadyRecord> rows = make_up_records({0, 300, 5, 12, 6}, 40, {{"", bin}}, 100);
  return plan_records(repeat_records(rows, 40, 30000), each, plan_memory(each), {});
}

/// Adds up what the model of a device counts of the same steps.
class Counted final : public StepObserver {
 public:
  explicit Counted(const ModelConfig& config) : config_(config), phases_(config, {2, 2, 2, 1}) {}
  void start(const StepBatch& batch) override {
    const StepCounts counts = count_step(batch, config_);
    for (const AttentionCounts& each : counts.attention) {
      keys += each.keys * each.layers;
      pairs += each.pairs * each.layers * config_.kv_heads;
    }
    tokens += counts.tokens;
    phases_.start(batch);
  }
  void finish() override {}
  const PhaseTable& phases() const { return phases_.table(); }
  double keys = 0, pairs = 0, tokens = 0;

 private:
  ModelConfig config_;
  PhaseCount phases_;
};

TEST(Phases, SumsAreThoseOfTheEngineAndTheGraphs) {
  for (const char* shape : {"qwen3-8b", "qwen3-30b-a3b", "smollm2-135m"}) {
    for (const char* method : {"ippd", "prefix", "standard"}) {
      const EstimateCase each = case_of(method, shape);
      PlannedRecords planned = prompts(each);
      WorkCount graphs(layer_windows(each.config));
      for (const Stack& stack : planned.stacks) graphs.add(stack);
      const Work& work = graphs.work();
      const SimulatedRun run = simulate(each, plan_memory(each), 0, std::move(planned.stacks));
      const PhaseTable& phases = run.phases;
      const PhaseWork all = phases.total();
      EXPECT_EQ(all.tokens, static_cast<double>(run.engine.tokens()));
      EXPECT_EQ(phases.of(Phase::decode).tokens, static_cast<double>(run.engine.decode_tokens));
      EXPECT_EQ(all.tokens, static_cast<double>(work.rows)) << method;
      EXPECT_DOUBLE_EQ(all.products.flops, gemm_flops(work, each.config)) << method;
      EXPECT_DOUBLE_EQ(all.attention.flops, attention_flops(work, each.config)) << method;
      EXPECT_EQ(phases.of(Phase::shared).tokens == 0, std::string_view(method) == "standard");
      EXPECT_GT(phases.of(Phase::own).tokens, 0);
    }
  }
}

TEST(Phases, KeysAreReadAsOftenAsTheDeviceModelCountsThem) {
  const EstimateCase each = case_of("ippd", "qwen3-8b");
  Counted counted(each.config);
  CountingBackend backend(each.config, 1, 2048);
  const StopRules rules(each.config.vocab, {});
  EngineOptions options{.tokens_per_step = 2048, .pages = 4000, .page_size = kPageSize};
  options.observer = &counted;
  Engine engine(backend, rules, options);
  std::vector<Stack> stacks = prompts(each).stacks;
  size_t next = 0;
  engine.run(
      [&]() -> std::optional<Stack> {
        return next < stacks.size() ? std::optional(stacks[next++]) : std::nullopt;
      },
      [](Stack&&, std::vector<Answer>&&) {});
  const PhaseWork all = counted.phases().total();
  const ModelConfig& config = each.config;
  EXPECT_DOUBLE_EQ(all.attention.flops, 4 * counted.pairs * config.head_dim);
  // A byte a key and value of all layers, and the queries and outputs of each token.
  const double sides = 2.0 * 2 * config.heads * config.head_dim * config.layer_count();
  EXPECT_NEAR(all.attention.bytes, counted.keys / config.layer_count() + counted.tokens * (1 + sides),
              all.attention.bytes * 1e-9);
}

TEST(Phases, SharedReadsRaiseTheIntensityOfDecoding) {
  // IPPD, appendix A.2: the keys of a context are read once for all its questions.
  const auto intensity = [](const char* method) {
    const EstimateCase each = case_of(method, "qwen3-8b");
    return simulate(each, plan_memory(each), 6, prompts(each).stacks)
        .phases.of(Phase::decode)
        .attention.intensity();
  };
  EXPECT_GT(intensity("ippd"), 2 * intensity("standard"));
}

TEST(Phases, ASplitStepCountsTheSame) {
  StepBatch batch;
  for (int32_t row = 0; row < 10; ++row) {
    batch.tokens.push_back(0);
    batch.positions.push_back(row);
    batch.kv_slots.push_back(row);
  }
  batch.decode_tokens = 3;
  batch.shared_rows = {{3, 4}, {8, 1}};
  const auto [first, second] = split_batch(batch, 5);
  PhaseCount whole(shape_by_name("smollm2-135m"), {}), parts(shape_by_name("smollm2-135m"), {});
  whole.start(batch);
  parts.start(first);
  parts.start(second);
  for (size_t p = 0; p < 3; ++p) EXPECT_EQ(whole.table()[p].tokens, parts.table()[p].tokens);
  EXPECT_EQ(whole.table().of(Phase::shared).tokens, 5);
}

TEST(Phases, TextAndJsonSayWhichLimitHolds) {
  PhaseTable table;
  table.of(Phase::decode) = {10, {4e12, 1e9}, {2e9, 1e9}};
  const std::string text = phases_text(table, 200);
  EXPECT_NE(text.find("4 TFLOP"), std::string::npos) << text;
  EXPECT_NE(text.find("compute"), std::string::npos);
  EXPECT_NE(text.find("memory"), std::string::npos);
  EXPECT_EQ(text.find("shared"), std::string::npos) << "phases without tokens are left out";
  const auto json = phases_json(table, 200);
  EXPECT_EQ(json["decode"]["attention"]["intensity"], 2.0);
  EXPECT_EQ(json["shared"]["products"]["intensity"], 0.0);
}

}  // namespace
}  // namespace sheaf

#include "io/jobs/no_attention.h"

#include "tests/engine/decode.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

/// Keeps the batches that it is given.
class KeptBatches final : public CountingBackend {
 public:
  explicit KeptBatches(const ModelConfig& config) : CountingBackend(config, 64, 32) {}
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    check_batch(batch, config(), 1000, 4);
    batches.push_back(batch);
    CountingBackend::step(batch, picked, logits);
  }
  std::vector<StepBatch> batches;
};

TEST(NoAttention, EveryTokenSeesOneKeyAndTheRestOfTheStepStays) {
  const Model model = test::make_random_model({}, 1);
  const ModelConfig& config = model.config;
  for (int kind = 0; kind < test::kKinds; ++kind) {
    KeptBatches seeing(config), unseeing(config);
    NoAttention backend(unseeing);
    EngineOptions options;
    options.pages = 1000;
    options.page_size = 4;
    options.tokens_per_step = 20;
    test::decode(seeing, test::random_stacks(1, kind), options);
    test::decode(backend, test::random_stacks(1, kind), options);
    ASSERT_EQ(seeing.batches.size(), unseeing.batches.size());
    for (size_t i = 0; i < seeing.batches.size(); ++i) {
      const StepBatch &with = seeing.batches[i], &without = unseeing.batches[i];
      EXPECT_EQ(with.tokens, without.tokens);
      EXPECT_EQ(with.kv_slots, without.kv_slots);
      EXPECT_EQ(with.picks.size(), without.picks.size());
      ASSERT_EQ(without.tile_rows.size(), without.tokens.size());
      for (const TileRow& row : without.tile_rows) {
        EXPECT_EQ(row.visible, 1);
        EXPECT_EQ(without.spans[0].first_seen(without.positions[static_cast<size_t>(row.row)], 1), 0);
      }
    }
  }
}

}  // namespace
}  // namespace sheaf

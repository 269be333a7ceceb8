// A step cut in two that run one after the other.
#include <gtest/gtest.h>
#include <random>

#include "cpu/cpu_backend.h"
#include "tests/cpu/graph_runner.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::make_random_model;

/// Runs every step in random parts.
class InParts : public Backend {
 public:
  InParts(Backend& inner, uint32_t seed) : inner_(inner), random_(seed) {}
  const ModelConfig& config() const override { return inner_.config(); }
  std::string describe() const override { return "in parts"; }
  void allocate_kv(int32_t pages, int32_t page_size) override { inner_.allocate_kv(pages, page_size); }
  int64_t kv_bytes_per_token() const override { return inner_.kv_bytes_per_token(); }
  int32_t preferred_tokens() const override { return inner_.preferred_tokens(); }
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    ++steps;
    if (batch.rows() < 2 || random_() % 4 == 0) return inner_.step(batch, picked, logits);
    const auto rows = std::uniform_int_distribution<int32_t>(1, batch.rows() - 1)(random_);
    const auto [first, second] = split_batch(batch, rows);
    EXPECT_EQ(first.rows(), rows);
    EXPECT_EQ(first.rows() + second.rows(), batch.rows());
    const size_t picks = first.picks.size(), floats = picks * static_cast<size_t>(config().vocab);
    step(first, picked.first(picks), logits.first(floats));
    step(second, picked.subspan(picks), logits.subspan(floats));
  }
  int64_t steps = 0;

 private:
  Backend& inner_;
  std::mt19937 random_;
};

TEST(SplitBatch, PartsAreTheWholeToTheBit) {
  const Model model = make_random_model({}, 3);
  int64_t steps = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    test::Graph graph = test::random_graph(random, 9, 20, model.config.vocab);
    if (seed % 4 == 0) graph = test::weighed_apart(random, std::move(graph), {0.5f, 0.8f});
    const test::RunLayout layout{.seed = seed,
                                 .page_size = seed % 2 ? 4 : 16,
                                 .most_rows = seed % 3 ? 50 : 1 << 20,
                                 .shuffle_pages = true};
    const auto whole = make_quick_backend(model, 1);
    const auto inner = make_quick_backend(model, 1);
    InParts parts(*inner, seed);
    EXPECT_EQ(test::run_graph(*whole, graph, layout), test::run_graph(parts, graph, layout)) << seed;
    steps += parts.steps;
  }
  EXPECT_GT(steps, 300);
}

}  // namespace
}  // namespace sheaf

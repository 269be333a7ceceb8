// The scores of several chains on the device against the CPU's definition.
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "core/engine/step_batch.h"
#include "cpu/cpu_backend.h"
#include "cuda/base/device_memory.h"
#include "cuda/base/devices.h"
#include "cuda/cuda_backend.h"
#include "tests/cuda/need_gpu.h"
#include "tests/engine/decode.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::make_random_model;

/// Runs every step on the device and checks each choice, and each contrast found, against its own logits.
class Checked : public Backend {
 public:
  explicit Checked(Backend& inner) : inner_(inner) {}
  const ModelConfig& config() const override { return inner_.config(); }
  std::string describe() const override { return inner_.describe(); }
  void allocate_kv(int32_t pages, int32_t page_size) override { inner_.allocate_kv(pages, page_size); }
  int64_t kv_bytes_per_token() const override { return inner_.kv_bytes_per_token(); }
  int32_t preferred_tokens() const override { return inner_.preferred_tokens(); }
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float>) override {
    const auto vocab = static_cast<size_t>(config().vocab);
    std::vector<float> logits(picked.size() * vocab);
    inner_.step(batch, picked, logits);
    const std::span picks(batch.picks);
    for (size_t i = 0; i < picks.size(); i += 1 + static_cast<size_t>(picks[i].chains)) {
      if (picks[i].chains == 0) continue;
      const auto group = picks.subspan(i, 1 + static_cast<size_t>(picks[i].chains));
      std::vector<float> fused(vocab);
      const float contrast = fuse_chains(group, logits.data() + i * vocab, vocab, fused);
      EXPECT_NEAR(picked[i].contrast, contrast, 1e-4f + 1e-3f * contrast);
      const Picked own = pick_next(picks.subspan(i), batch.allowed, logits.data() + i * vocab, vocab, vocab);
      ASSERT_TRUE(picked[i].token >= 0 && picked[i].token < config().vocab) << picked[i].token;
      // Where the two differ, the scores are as good as equal.
      EXPECT_NEAR(fused[static_cast<size_t>(picked[i].token)], fused[static_cast<size_t>(own.token)], 2e-3f);
      EXPECT_NEAR(picked[i].logprob, own.logprob, 5e-3f);
      dynamic += picks[i].contrast < 0;
      ++groups;
      same += picked[i].token == own.token;
      EXPECT_TRUE(picked[i].voice >= 1 && picked[i].voice <= picks[i].chains) << picked[i].voice;
      voices += picked[i].token == own.token && picked[i].voice == own.voice;
    }
  }
  int64_t groups = 0, dynamic = 0, same = 0, voices = 0;

 private:
  Backend& inner_;
};

TEST(CudaChains, ChoosesAsTheDefinitionSays) {
  NEED_GPU();
  int64_t groups = 0, dynamic = 0, same = 0, voices = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const Model model = make_random_model({.layers = 2, .hidden = 64, .ffn = 96, .head_dim = 32}, 70 + seed);
    const auto backend = make_cuda_backend(model, {});
    Checked checked(*backend);
    EngineOptions options{
        .tokens_per_step = seed % 2 ? 40 : 300, .pages = 2000, .page_size = 16, .seed = seed};
    if (seed % 5 == 4) options.temperature = 1;
    EXPECT_EQ(test::decode(checked, test::random_stacks(seed, 6), options).size(), 36u);
    groups += checked.groups;
    dynamic += checked.dynamic;
    same += checked.same;
    voices += checked.voices;
  }
  EXPECT_GT(groups, 1000);
  EXPECT_GT(dynamic, 200);
  EXPECT_GT(same, groups * 98 / 100);
  EXPECT_GT(voices, groups * 97 / 100);
}

/// More chains than rows of logits are held at once, and a vocabulary as large as they come.
TEST(CudaChains, ChoosesAmongManyChainsAndTokens) {
  NEED_GPU();
  for (const auto& [chains, vocab] : {std::pair{size_t{1100}, 4001}, {size_t{12}, 151936}}) {
    const Model model =
        make_random_model({.layers = 1, .hidden = 64, .ffn = 96, .head_dim = 32, .vocab = vocab}, 90);
    for (const Aggregate aggregate : {Aggregate::max, Aggregate::mixture, Aggregate::product}) {
      auto records = test::make_random_records({.records = 1, .questions = 1, .max_tokens = 2}, 5);
      while (records[0].documents.size() < chains) test::add_random_chains(records, 40, 6, 5);
      records[0].documents.resize(chains);
      Job::Method method;
      method.aggregate = aggregate;
      std::vector<Stack> stacks;
      build_pced(records, method, true, stacks);
      const auto backend = make_cuda_backend(model, {});
      Checked checked(*backend);
      test::decode(checked, std::move(stacks), {.tokens_per_step = 2000, .pages = 20000});
      EXPECT_GE(checked.groups, 1);
      EXPECT_EQ(checked.dynamic, 1);
    }
  }
}

TEST(CudaChains, AnswersDoNotDependOnTheStepsWhenReproducible) {
  NEED_GPU();
  const Model model =
      make_random_model({.layers = 2, .hidden = 64, .ffn = 96, .head_dim = 32, .vocab = 64}, 91);
  CudaOptions options;
  options.reproducible = true;
  const auto stacks = test::random_stacks(3, 6);
  const auto one = make_cuda_backend(model, options);
  const auto first = test::decode(*one, stacks, {.tokens_per_step = 300, .pages = 2000});
  const auto other = make_cuda_backend(model, options);
  test::expect_same(first, test::decode(*other, stacks, {.tokens_per_step = 20, .pages = 2000}), "steps");
}

}  // namespace
}  // namespace sheaf

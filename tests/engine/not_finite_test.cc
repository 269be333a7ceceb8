// Logits that are not finite end the run, on every backend and with every method, before an answer is made of
// them.
#include <cmath>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "cpu/cpu_backend.h"
#include "tests/engine/decode.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::Answers, test::decode, test::expect_same, test::long_stacks, test::make_random_model,
    test::MakeBackend, test::quick;

std::unique_ptr<Backend> reference(const Model& model) {
  return make_reference_backend(model);
}

/// Every value of a weight replaced: finite, so that it loads, but too large to compute with.
void fill(Model& model, Matrix& weight, float value) {
  auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(weight.rows * weight.cols), value);
  weight.data = reinterpret_cast<const std::byte*>(values->data());
  model.files.push_back(std::move(values));
}

void expect_unsound(Backend& backend, const std::vector<Stack>& stacks, const EngineOptions& options) {
  try {
    decode(backend, stacks, options);
    ADD_FAILURE() << "the run did not end";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::fatal);
    for (const char* part : {"not finite", "overflow", "model.dtype", "committed rows are kept"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

class NotFiniteLogitsOn : public testing::TestWithParam<MakeBackend> {};

TEST_P(NotFiniteLogitsOn, EndTheRunOfEveryMethod) {
  Model model = make_random_model({}, 5);
  fill(model, model.final_norm, 3e38f);
  const auto backend = GetParam()(model);
  for (int kind = 0; kind < test::kKinds; ++kind)
    for (const float temperature : {0.0f, 0.7f}) {
      SCOPED_TRACE("kind " + std::to_string(kind));
      EngineOptions options{.tokens_per_step = 40, .pages = 2000, .temperature = temperature};
      expect_unsound(*backend, long_stacks(1, kind), options);
      options.speculation = {.lookup = true, .sparing = false};
      expect_unsound(*backend, long_stacks(3, kind), options);
    }
}

/// Wherever numbers get too large, it is seen at the end.
TEST_P(NotFiniteLogitsOn, AreNoticedFromEveryOverflowingWeight) {
  const std::vector<std::pair<const char*, Matrix LayerWeights::*>> weights{
      {"q", &LayerWeights::q},
      {"k", &LayerWeights::k},
      {"v", &LayerWeights::v},
      {"o", &LayerWeights::o},
      {"gate", &LayerWeights::gate},
      {"up", &LayerWeights::up},
      {"down", &LayerWeights::down},
      {"attention_norm", &LayerWeights::pre_attention_norm},
      {"mlp_norm", &LayerWeights::pre_mlp_norm}};
  const EngineOptions options{.tokens_per_step = 40, .pages = 2000};
  for (const auto& [name, weight] : weights) {
    SCOPED_TRACE(name);
    Model model = make_random_model({}, 6);
    fill(model, model.layers[0].*weight, 3e38f);
    expect_unsound(*GetParam()(model), long_stacks(1, 0), options);
  }
  Model model = make_random_model({}, 6);
  fill(model, model.embedding, 1e25f);  // the squares of its norm overflow
  expect_unsound(*GetParam()(model), long_stacks(1, 0), options);
}

std::string not_finite_name(const testing::TestParamInfo<MakeBackend>& backend) {
  constexpr const char* kNames[] = {"reference", "f32", "int16", "int8"};
  return kNames[backend.index];
}
INSTANTIATE_TEST_SUITE_P(Cpu, NotFiniteLogitsOn,
                         testing::Values(&reference, &quick<Precision::f32>, &quick<Precision::int16>,
                                         &quick<Precision::int8>),
                         not_finite_name);

/// A backend whose picks are not sound from some step on.
class Spoilt : public Backend {
 public:
  Spoilt(Backend& inner, int good_steps) : inner_(inner), left_(good_steps) {}
  const ModelConfig& config() const override { return inner_.config(); }
  std::string describe() const override { return inner_.describe(); }
  void allocate_kv(int32_t pages, int32_t page_size) override { inner_.allocate_kv(pages, page_size); }
  int64_t kv_bytes_per_token() const override { return inner_.kv_bytes_per_token(); }
  int32_t preferred_tokens() const override { return inner_.preferred_tokens(); }
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    inner_.step(batch, picked, logits);
    if (left_-- > 0) return;
    for (Picked& pick : picked) pick.logprob = NAN;
  }

 private:
  Backend& inner_;
  int left_;
};

TEST(NotFiniteLogits, CompleteAnswersAreHandedOutFirst) {
  const auto inner = make_quick_backend(make_random_model({}, 5), 1);
  const std::vector<Stack> stacks = long_stacks(5, 2);
  const EngineOptions options{.tokens_per_step = 30, .pages = 2000};
  const Answers right = decode(*inner, stacks, options);
  Spoilt backend(*inner, 20);
  const StopRules rules(inner->config().vocab, {3, 7});
  Engine engine(backend, rules, options);
  size_t next = 0, answers = 0;
  EXPECT_THROW(
      engine.run(
          [&]() -> std::optional<Stack> {
            return next < stacks.size() ? std::optional(stacks[next++]) : std::nullopt;
          },
          [&](Stack&& stack, std::vector<Answer>&& got) {
            for (size_t i = 0; i < got.size(); ++i, ++answers)
              EXPECT_EQ(got[i].tokens, right.at({stack.slots[i].record, stack.slots[i].question}).tokens);
          }),
      Error);
  EXPECT_GT(answers, 0u);
  EXPECT_LT(answers, right.size());
}

TEST(NotFiniteLogits, ADraftIsLeftOutAndTheAnswersStay) {
  const Model model = make_random_model({}, 5);
  const auto backend = make_quick_backend(model, 1), inner = make_quick_backend(model, 1);
  EngineOptions options{.tokens_per_step = 400, .pages = 2000};
  const std::vector<Stack> stacks = long_stacks(5, 0);
  const Answers right = decode(*backend, stacks, options);
  Spoilt guesser(*inner, 6);
  Draft draft(guesser, {});
  options.speculation = {.draft = &draft, .sparing = false};
  EngineStats stats;
  expect_same(right, decode(*backend, stacks, options, &stats), "a draft that is not sound");
  EXPECT_TRUE(stats.draft_unsound);
  EXPECT_FALSE(stats.draft_failed);
  EXPECT_GT(stats.proposed_tokens, 0);
  EXPECT_EQ(stats.proposed_tokens, stats.accepted_tokens);
}

}  // namespace
}  // namespace sheaf

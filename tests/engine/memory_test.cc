// Memory that runs short shrinks steps and the pool, and changes no answer.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "cpu/cpu_backend.h"
#include "tests/engine/decode.h"
#include "tests/engine/delayed_backend.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::Answers, test::decode, test::expect_same;
using test::make_random_model;
using test::random_stacks, test::tight_pool;

/// Passes everything on; tests change a part.
class Around : public Backend {
 public:
  explicit Around(Backend& inner) : inner_(inner) {}
  const ModelConfig& config() const override { return inner_.config(); }
  std::string describe() const override { return inner_.describe(); }
  void allocate_kv(int32_t pages, int32_t page_size) override { inner_.allocate_kv(pages, page_size); }
  int64_t kv_bytes_per_token() const override { return inner_.kv_bytes_per_token(); }
  int32_t preferred_tokens() const override { return inner_.preferred_tokens(); }
  int32_t steps_at_once() const override { return inner_.steps_at_once(); }
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    inner_.step(batch, picked, logits);
  }
  void start(const StepBatch& batch, std::span<Picked> picked) override { inner_.start(batch, picked); }
  void finish() override { inner_.finish(); }

 protected:
  Backend& inner_;
};

/// Looks at every step before it runs, and knows how many are in flight.
class Looking : public Around {
 public:
  using Around::Around;
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    check(batch);
    inner_.step(batch, picked, logits);
  }
  void start(const StepBatch& batch, std::span<Picked> picked) override {
    check(batch);
    inner_.start(batch, picked);
    ++in_flight_;
  }
  void finish() override {
    --in_flight_;
    inner_.finish();
  }

 protected:
  virtual void check(const StepBatch& batch) = 0;
  int64_t in_flight_ = 0;
};

/// A device whose memory holds fewer and fewer rows: the limit falls to `later` after some steps.
class Tight : public Looking {
 public:
  Tight(Backend& inner, int32_t first, int32_t later) : Looking(inner), limit_(first), later_(later) {}
  void allocate_kv(int32_t pages, int32_t page_size) override {
    if (pages > most_pages) throw OutOfMemory("no room for the pool");
    Around::allocate_kv(pages, page_size);
  }
  int32_t most_pages = INT32_MAX;
  int64_t refused = 0, refused_in_flight = 0;

 private:
  void check(const StepBatch& batch) override {
    if (++steps_ == 4) limit_ = later_;
    if (batch.rows() <= limit_) return;
    ++refused;
    refused_in_flight += in_flight_ > 0;
    throw OutOfMemory("9 MB of device memory cannot be allocated");
  }
  int32_t limit_, later_;
  int64_t steps_ = 0;
};

TEST(Memory, ShrinkingStepsChangeNoAnswer) {
  int64_t split = 0, split_in_flight = 0;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    const Model model = make_random_model({}, 40 + seed);
    for (int kind = 0; kind < test::kKinds; ++kind) {
      const auto stacks = random_stacks(seed, kind);
      const EngineOptions options{.tokens_per_step = seed % 2 ? 150 : 50,
                                  .pages = seed % 4 < 2 ? tight_pool(stacks) : 2000,
                                  .page_size = 4};
      const auto plain = make_quick_backend(model, 1);
      const Answers expected = decode(*plain, stacks, options);
      for (const int32_t at_once : {1, 2}) {
        const auto inner = make_quick_backend(model, 1);
        test::Delayed delayed(*inner, at_once, test::When::at_finish);
        Tight tight(delayed, seed % 2 ? 60 : 1000, 17);
        EngineStats stats;
        expect_same(expected, decode(tight, stacks, options, &stats),
                    fmt::format("seed {}, kind {}, {} at once", seed, kind, at_once));
        split += stats.split_steps;
        split_in_flight += tight.refused_in_flight;
        // Every refusal but the first of a step halves the next ones: 150, 75, 38, 19.
        EXPECT_LE(tight.refused, 4 + stats.split_steps);
        EXPECT_LE(stats.split_steps, 3);
      }
    }
  }
  EXPECT_GT(split, 90);
  EXPECT_GT(split_in_flight, 10);
}

TEST(Memory, TooLittleForAnyStepIsAnErrorThatNamesTheSetting) {
  const Model model = make_random_model({}, 1);
  const auto inner = make_quick_backend(model, 1);
  Tight tight(*inner, 3, 3);
  try {
    decode(tight, random_stacks(1, 0), {.tokens_per_step = 50, .pages = 500});
    ADD_FAILURE() << "it should have failed";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::fatal);
    EXPECT_NE(std::string(error.what()).find("engine.kv_memory_gb"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("9 MB"), std::string::npos) << error.what();
  }
}

TEST(Memory, ThePoolIsAsLargeAsMemoryAllows) {
  const Model model = make_random_model({}, 2);
  const auto stacks = random_stacks(2, 0);
  const auto plain = make_quick_backend(model, 1);
  const Answers expected = decode(*plain, stacks, {.tokens_per_step = 40, .pages = 100000});
  const auto inner = make_quick_backend(model, 1);
  Tight tight(*inner, 1000, 1000);
  tight.most_pages = 333;
  expect_same(expected, decode(tight, stacks, {.tokens_per_step = 40, .pages = 100000}), "a small pool");

  const StopRules rules(61, {});
  const Engine engine(tight, rules, {.pages = 100000});
  EXPECT_LE(engine.pages(), 333);
  EXPECT_GE(engine.pages(), 333 * 7 / 8);
  tight.most_pages = 0;
  EXPECT_THROW(Engine(tight, rules, {.pages = 100000}), OutOfMemory);
}

/// Takes time to make a pool, so the engine begins with a small one.
class Growing : public Looking {
 public:
  Growing(Backend& inner, int32_t most) : Looking(inner), most_(most) {}
  void allocate_kv(int32_t pages, int32_t page_size) override {
    pages_ = pages;
    Around::allocate_kv(most_, page_size);
  }
  bool grows_kv() const override { return true; }
  void grow_kv(int32_t pages) override {
    EXPECT_EQ(in_flight_, 0);
    EXPECT_GT(pages, pages_);
    if (pages > room) throw OutOfMemory("no room for a larger pool");
    pages_ = pages;
    ++grown;
  }
  int32_t room = INT32_MAX;
  int64_t grown = 0, steps_before = 0;

 private:
  void check(const StepBatch& batch) override {
    steps_before += grown == 0;
    for (const int32_t page : batch.pages) EXPECT_LT(page, pages_);
  }
  int32_t most_, pages_ = 0;
};

TEST(Memory, AGrowingPoolChangesNoAnswer) {
  int64_t steps_before = 0;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const Model model = make_random_model({}, 60 + seed);
    for (int kind = 0; kind < test::kKinds; ++kind) {
      const auto stacks = random_stacks(seed, kind);
      const EngineOptions options{
          .tokens_per_step = seed % 2 ? 60 : 9, .pages = 4000, .page_size = 4, .small_start = true};
      const auto plain = make_quick_backend(model, 1);
      const Answers expected = decode(*plain, stacks, options);
      for (const int32_t at_once : {1, 2}) {
        const auto inner = make_quick_backend(model, 1);
        test::Delayed delayed(*inner, at_once, test::When::at_finish);
        Growing growing(delayed, options.pages);
        if (seed == 3) growing.room = 1500;  // less than was hoped for
        expect_same(expected, decode(growing, stacks, options),
                    fmt::format("seed {}, kind {}, {} at once", seed, kind, at_once));
        EXPECT_LE(growing.grown, 1);
        EXPECT_EQ(growing.grown, seed % 2 ? growing.grown : 1);
        steps_before += growing.grown * growing.steps_before;
      }
    }
  }
  EXPECT_GT(steps_before, 20) << "steps on a pool that grew later";
}

TEST(Memory, APoolThatCannotGrowIsUsedAsItIs) {
  const Model model = make_random_model({}, 2);
  const auto stacks = random_stacks(2, 0);
  const EngineOptions options{.tokens_per_step = 60, .pages = 4000, .page_size = 4, .small_start = true};
  const auto plain = make_quick_backend(model, 1);
  const Answers expected = decode(*plain, stacks, options);
  const auto inner = make_quick_backend(model, 1);
  Growing growing(*inner, options.pages);
  growing.room = 0;
  expect_same(expected, decode(growing, stacks, options), "a pool that stays small");
  EXPECT_EQ(growing.grown, 0);
}

TEST(Memory, ACpuPoolLargerThanTheMachineIsMadeSmaller) {
  const Model model = make_random_model({.layers = 1, .kv_heads = 4, .head_dim = 64}, 3);
  const StopRules rules(61, {});
  constexpr int32_t kPages = INT32_MAX / 16;
  for (const bool quick : {true, false}) {
    const auto backend = quick ? make_quick_backend(model, 1) : make_reference_backend(model);
    EXPECT_THROW(backend->allocate_kv(kPages, 16), OutOfMemory) << backend->describe();
    const Engine engine(*backend, rules, {.pages = kPages});
    EXPECT_LT(engine.pages(), kPages) << backend->describe();
    EXPECT_GT(engine.pages(), 1000) << backend->describe();
  }
}

}  // namespace
}  // namespace sheaf

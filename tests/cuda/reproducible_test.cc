// With `reproducible`, what a row's answer is must not depend on the steps it is computed in, on its
// neighbours or on how prompts are packed, to the bit of its log-probability.
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cuda/base/devices.h"
#include "cuda/cuda_backend.h"
#include "cuda/gemm/gemm.h"
#include "tests/cuda/need_gpu.h"
#include "tests/engine/decode.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::Answers;
using test::make_random_model;
using test::make_random_records;
using test::RandomModelShape;

constexpr RandomModelShape kShapes[] = {
    {.hidden = 64, .head_dim = 64, .vocab = 504},
    {.hidden = 128, .heads = 8, .head_dim = 128, .vocab = 504, .qk_norm = QkNorm::per_head},
    {.hidden = 64, .head_dim = 32, .vocab = 504, .qk_norm = QkNorm::whole, .post_norm = true},
};

/// gpt-oss in sizes that e4m3 goes by, too.
constexpr RandomModelShape kGptOss{
    .layers = 3, .hidden = 64, .heads = 16, .head_dim = 64, .vocab = 504, .change = [](ModelConfig& config) {
      test::use_gpt_oss(config);
      config.experts.ffn = 48;
    }};

TEST(Reproducible, PackedPromptsAreSeparateOnesToTheBit) {
  NEED_HOPPER();
  using Build = void (*)(std::span<const RecordParts>, std::vector<Stack>&);
  const std::pair<const char*, Build> kinds[] = {
      {"separate", [](auto records, auto& out) { build_separate(records, out); }},
      {"prefix", [](auto records, auto& out) { build_prefix(records, out); }},
      {"tree", [](auto records, auto& out) { build_tree(records, out); }}};
  const auto expect_same = [&](const RandomModelShape& shape, int32_t longest, bool fp8,
                               bool fp8_keys = false) {
    const Model model = make_random_model(shape, 22);
    const auto records = make_random_records({.records = longest > 1000 ? 3 : 12,
                                              .questions = 6,
                                              .vocab = 504,
                                              .max_tokens = 9,
                                              .own_questions = true,
                                              .longest = longest},
                                             22);
    Answers alone;
    for (const auto& [name, build] : kinds)
      for (const int32_t rows : {3000, name == kinds[2].first ? 37 : 500}) {
        std::vector<Stack> stacks;
        build(records, stacks);
        const auto backend =
            make_cuda_backend(model, {.fp8 = fp8, .fp8_keys = fp8_keys, .reproducible = true});
        // Whole pages of gpt-oss's prompts take 14,463 at once.
        const Answers answers = test::decode(
            *backend, stacks, {.tokens_per_step = rows, .pages = 20000, .small_start = fp8_keys});
        if (alone.empty()) alone = answers;
        test::expect_same(alone, answers,
                          fmt::format("{}, {} rows a step, records of {}{}{}", name, rows, longest,
                                      fp8 ? ", in FP8" : "", fp8_keys ? ", keys in FP8" : ""));
      }
  };
  for (const RandomModelShape& shape : kShapes) {
    for (const int32_t longest : {40, 700, 5000}) expect_same(shape, longest, false);
    expect_same(shape, 700, true);
    expect_same(shape, 700, false, true);
  }
  for (const int32_t longest : {40, 700, 5000}) expect_same(kGptOss, longest, false);
  expect_same(kGptOss, 700, true);
  expect_same(kGptOss, 700, false, true);
}

TEST(Reproducible, DocumentsThatAreWeighedApartAndSharedAreThoseOfOnePromptToTheBit) {
  NEED_HOPPER();
  for (const RandomModelShape& shape : {kShapes[0], kShapes[1], kShapes[2], kGptOss})
    for (const bool narrow : {false, true}) {
      const Model model = make_random_model(shape, 24);
      auto records = make_random_records(
          {.records = 6, .questions = 5, .vocab = 504, .max_tokens = 9, .own_questions = true}, 24);
      test::add_random_chains(records, 4, 900, 24);
      Answers alone;
      for (const bool shared : {false, true})
        for (const int32_t rows : {3000, 300}) {
          std::vector<Stack> stacks;
          build_ape(records, shared, stacks, {0.5f, 0.8f});
          const auto backend = make_cuda_backend(model, {.fp8_keys = narrow, .reproducible = true});
          const Answers answers = test::decode(*backend, stacks, {.tokens_per_step = rows, .pages = 20000});
          if (alone.empty()) alone = answers;
          test::expect_same(
              alone, answers,
              fmt::format("heads of {}, {}, {} rows a step{}", shape.head_dim,
                          shared ? "shared" : "not shared", rows, narrow ? ", keys in FP8" : ""));
        }
    }
}

TEST(Reproducible, AnswersDoNotDependOnTheirBatch) {
  NEED_HOPPER();
  ASSERT_TRUE(cuda::hopper_products());
  for (const RandomModelShape& shape : kShapes) {
    const Model model = make_random_model(shape, 21);
    const auto records = make_random_records(
        {.records = 24, .questions = 5, .vocab = 504, .max_tokens = 7, .own_questions = true, .longest = 300},
        21);
    for (const char* method : {"ippd", "standard"}) {
      std::vector<Stack> stacks;
      Job::Method asked;
      asked.name = method;
      asked.documents = 0;
      make_builder(asked).build(records, stacks);
      std::vector<Answers> runs;
      for (const int32_t rows : {2000, 333, 48}) {
        const auto backend = make_cuda_backend(model, {.reproducible = true});
        runs.push_back(
            test::decode(*backend, stacks, {.tokens_per_step = rows, .pages = rows == 333 ? 2000 : 6000}));
        EXPECT_EQ(runs.back().size(), 120u);
        test::expect_same(runs.front(), runs.back(), fmt::format("{}, {} rows a step", method, rows));
      }
      // Alone: one stack at a time.
      if (stacks.size() > 1) {
        const auto backend = make_cuda_backend(model, {.reproducible = true});
        Answers alone;
        for (size_t i = 0; i < stacks.size(); i += 7)
          alone.merge(test::decode(*backend, {stacks[i]}, {.tokens_per_step = 2000, .pages = 6000}));
        EXPECT_GT(alone.size(), 5u);
        for (const auto& [key, answer] : alone) {
          EXPECT_EQ(answer.tokens, runs.front().at(key).tokens);
          EXPECT_EQ(answer.logprob, runs.front().at(key).logprob);
        }
      }
    }
  }
}

TEST(Reproducible, SpeculationChangesNoAnswer) {
  NEED_HOPPER();
  EngineStats sum;
  for (const RandomModelShape& shape : kShapes) {
    const Model model = make_random_model(shape, 23);
    const auto records = make_random_records(
        {.records = 8, .questions = 3, .vocab = 504, .max_tokens = 40, .own_questions = true, .longest = 300},
        23);
    for (const auto& [fp8, fp8_keys] : {std::pair{false, false}, {true, false}, {false, true}}) {
      std::vector<Stack> stacks;
      build_tree(records, stacks);
      EngineOptions options{.tokens_per_step = 2000, .pages = 6000};
      const auto decode = [&](EngineStats* stats) {
        const auto backend =
            make_cuda_backend(model, {.fp8 = fp8, .fp8_keys = fp8_keys, .reproducible = true});
        return test::decode(*backend, stacks, options, stats);
      };
      const Answers plain = decode(nullptr);
      options.speculation = {.lookup = true, .sparing = false};
      EngineStats stats;
      test::expect_same(
          plain, decode(&stats),
          fmt::format("speculated{}{}", fp8 ? ", in FP8" : "", fp8_keys ? ", keys in FP8" : ""));
      sum += stats;
      const auto guesser = make_cuda_backend(model, {.fp8 = fp8, .fp8_keys = fp8_keys});
      Draft draft(*guesser, {.tokens_per_step = 500, .pages = 3000});
      options.speculation = {.draft = &draft, .sparing = false};
      test::expect_same(plain, decode(&stats), "with a draft");
      EXPECT_GT(stats.accepted_tokens, stats.proposed_tokens / 2) << "the draft is the model itself";
    }
  }
  EXPECT_GT(sum.accepted_tokens, 50);
  EXPECT_GT(sum.proposed_tokens, sum.accepted_tokens) << "nothing was proposed wrongly";
}

}  // namespace
}  // namespace sheaf

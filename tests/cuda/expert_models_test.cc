// Whole models with experts: the CUDA engine beside the CPU's definition, and packed prompts beside separate
// ones.
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>

#include "core/methods/method.h"
#include "cpu/cpu_backend.h"
#include "cuda/base/devices.h"
#include "cuda/cuda_backend.h"
#include "tests/cuda/need_gpu.h"
#include "tests/cuda/side_by_side.h"
#include "tests/engine/decode.h"
#include "tests/errors.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::Answers;
using test::make_random_model;
using test::RandomModelShape;

/// Experts as test::use_experts() has them, in sizes that the kernels take.
void use_shared(ModelConfig& config) {
  test::use_experts(config);
  config.experts.ffn = 24;
  config.experts.shared_ffn = 16;
}
void use_all_shared(ModelConfig& config) {
  use_shared(config);
  config.experts.per_token = config.experts.count;
}
void use_all_of_sigmoid(ModelConfig& config) {
  test::use_sigmoid_experts(config);
  config.experts.per_token = config.experts.count;
}
/// GELU, no gate beside, blocks that are scaled before they are added.
void use_all_scaled(ModelConfig& config) {
  use_all_shared(config);
  config.experts.shared_gate = config.experts.normalized = false;
  config.activation = Activation::gelu_tanh;
  config.residual_scale = 0.5f;
}
/// gpt-oss in sizes that the kernels take, e4m3's included.
void use_gpt_oss(ModelConfig& config) {
  test::use_gpt_oss(config);
  config.experts.ffn = 48;
}
void use_many(ModelConfig& config) {
  config.experts = {.count = 130, .per_token = 32, .ffn = 8, .normalized = true};
  for (LayerConfig& layer : config.layers) layer.experts = true;
}

void fill(Model& model, Matrix& weight, const std::function<float(int64_t)>& value_of) {
  auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(weight.rows * weight.cols));
  for (size_t i = 0; i < values->size(); ++i) (*values)[i] = value_of(static_cast<int64_t>(i));
  weight.data = reinterpret_cast<const std::byte*>(values->data());
  model.files.push_back(std::move(values));
}

void compare(const Model& model, double mean, double worst, const std::string& what) {
  for (int kind = 0; kind < 6; ++kind) {  // the others pick among chains, which SideBySide does not follow
    const auto cpu = make_reference_backend(model), gpu = make_cuda_backend(model, {});
    test::SideBySide both(*cpu, *gpu);
    test::decode(both, test::random_stacks(5, kind),
                 {.tokens_per_step = kind % 2 == 0 ? 9 : 64, .pages = 400});
    both.errors.print(fmt::format("{}, kind {}", what, kind));
    both.errors.expect_below(mean, worst, what);
  }
}

/// The same in sizes that e4m3 goes by.
void use_wide(ModelConfig& config) {
  use_shared(config);
  config.experts.ffn = 48;
  config.experts.shared_ffn = 32;
}
void use_all_wide(ModelConfig& config) {
  use_wide(config);
  config.experts.per_token = config.experts.count;
}
void use_wide_of_sigmoid(ModelConfig& config) {
  test::use_sigmoid_experts(config);
  config.experts.ffn = 32;
  config.experts.per_token = config.experts.count;
}

constexpr double kMean = 0.025, kWorst = 0.12;  // of bf16, where no rounding changes a choice

TEST(ExpertModels, AgreeWhereEveryExpertIsChosen) {
  NEED_GPU();
  compare(make_random_model({.change = use_all_shared}, 1), kMean, kWorst, "shared");
  compare(make_random_model({.hidden = 64, .post_norm = true, .change = use_all_shared}, 2), kMean, kWorst,
          "shared, norms after");
  compare(make_random_model({.hidden = 48, .change = use_all_of_sigmoid}, 3), kMean, kWorst, "sigmoid");
  compare(make_random_model({.change = use_all_scaled}, 4), kMean, kWorst, "scaled");
}

TEST(ExpertModels, AgreeWhereAllRowsChooseTheSameExperts) {
  NEED_GPU();
  // Scores that are all equal choose the first experts; a bias larger than any score chooses by itself.
  Model ties = make_random_model({.layers = 3, .change = use_shared}, 6);
  for (LayerWeights& layer : ties.layers)
    if (!layer.router.empty()) fill(ties, layer.router, [](int64_t) { return 0.0f; });
  compare(ties, kMean, kWorst, "ties");
  Model biased = make_random_model({.layers = 3, .change = test::use_sigmoid_experts}, 7);
  for (LayerWeights& layer : biased.layers)
    fill(biased, layer.router_bias, [](int64_t expert) { return static_cast<float>(expert * 4 % 9 * 2); });
  compare(biased, kMean, kWorst, "biased");
}

TEST(ExpertModels, CountTheTokensOfExpertsAsTheCpuDoes) {
  NEED_GPU();
  Model ties = make_random_model({.layers = 3, .change = use_shared}, 6);
  for (LayerWeights& layer : ties.layers)
    if (!layer.router.empty()) fill(ties, layer.router, [](int64_t) { return 0.0f; });
  for (const Model& model : {ties, make_random_model({.change = use_all_shared}, 1)}) {
    const auto cpu = make_reference_backend(model), gpu = make_cuda_backend(model, {});
    test::SideBySide both(*cpu, *gpu);
    test::decode(both, test::random_stacks(5, 1), {.tokens_per_step = 64, .pages = 400});
    const Routing right = cpu->routing(), counted = gpu->routing();
    EXPECT_GT(right.passes, 2);
    EXPECT_EQ(counted.experts, right.experts);
    EXPECT_EQ(counted.passes, right.passes);
    EXPECT_EQ(counted.tokens, right.tokens);
    EXPECT_EQ(counted.least_tokens, right.least_tokens);
    EXPECT_EQ(counted.busiest_tokens, right.busiest_tokens);
    EXPECT_EQ(counted.idle, right.idle);
    EXPECT_EQ(counted.expert_tokens.json(), right.expert_tokens.json());
  }
}

TEST(ExpertModels, AgreeWhereRowsChooseOneByOne) {
  NEED_GPU();
  // Where two experts have nearly the same score, rounding may choose the other one.
  const std::pair<const char*, void (*)(ModelConfig&)> kinds[] = {
      {"two of five", use_shared}, {"three of nine", test::use_sigmoid_experts}, {"32 of 130", use_many}};
  for (const auto& [name, change] : kinds)
    compare(make_random_model({.hidden = 64, .change = change}, 8), 0.1, 2, name);
}

TEST(ExpertModels, AgreeInFp8) {
  NEED_GPU();
  SKIP_UNLESS(test::gpu_capability() >= 89, test::Lacking::hopper, "a GPU before Ada");
  const std::pair<const char*, RandomModelShape> shapes[] = {
      {"shared", {.hidden = 256, .ffn = 512, .heads = 8, .head_dim = 32, .change = use_all_wide}},
      {"sigmoid", {.hidden = 512, .heads = 8, .head_dim = 64, .change = use_wide_of_sigmoid}},
      {"norms after",
       {.hidden = 256, .ffn = 512, .heads = 8, .head_dim = 32, .post_norm = true, .change = use_all_wide}},
  };
  for (const auto& [name, shape] : shapes) {
    const Model model = make_random_model(shape, 31);
    const auto stacks = test::random_stacks(5, 0);
    double means[2] = {};
    for (const bool fp8 : {false, true}) {
      const auto cpu = make_reference_backend(model), gpu = make_cuda_backend(model, {.fp8 = fp8});
      test::SideBySide both(*cpu, *gpu);
      test::decode(both, stacks, {.tokens_per_step = 64, .pages = 400});
      both.errors.print(fmt::format("{}, {}", name, fp8 ? "fp8" : "bf16"));
      both.errors.expect_below(fp8 ? 0.2 : 0.03, fp8 ? 0.55 : 0.12, name);
      means[fp8 ? 1 : 0] = both.errors.mean();
    }
    EXPECT_GT(means[1], 2 * means[0]) << name << ": this cannot be FP8";
  }
}

TEST(ExpertModels, PackedPromptsAreSeparateOnesToTheBit) {
  NEED_HOPPER();
  constexpr RandomModelShape shapes[] = {
      {.layers = 3, .hidden = 64, .head_dim = 64, .vocab = 504, .change = use_shared},
      {.hidden = 128, .heads = 8, .head_dim = 64, .vocab = 504, .change = use_wide},
      {.hidden = 128, .heads = 8, .head_dim = 128, .vocab = 504, .change = test::use_sigmoid_experts},
      {.hidden = 64, .head_dim = 32, .vocab = 504, .post_norm = true, .change = use_shared},
      {.layers = 3, .hidden = 64, .heads = 16, .head_dim = 64, .vocab = 504, .change = use_gpt_oss},
  };
  for (const RandomModelShape& shape : shapes) {
    const Model model = make_random_model(shape, 22);
    for (const int32_t longest : {40, 700}) {
      const auto records = test::make_random_records({.records = 12,
                                                      .questions = 6,
                                                      .vocab = 504,
                                                      .max_tokens = 9,
                                                      .own_questions = true,
                                                      .longest = longest},
                                                     22);
      Answers alone;
      for (const int32_t tokens : {3000, 333, 37}) {
        for (const bool tree : {false, true}) {
          std::vector<Stack> stacks;
          tree ? build_tree(records, stacks) : build_separate(records, stacks);
          for (const bool graphs : {false, true}) {
            const auto backend = make_cuda_backend(
                model, {.fp8 = shape.change == use_wide, .reproducible = true, .graphs = graphs});
            const Answers answers =
                test::decode(*backend, stacks, {.tokens_per_step = tokens, .pages = 20000});
            if (alone.empty()) alone = answers;
            test::expect_same(alone, answers,
                              fmt::format("{}{}, steps of {}, records of {}", tree ? "tree" : "separate",
                                          graphs ? ", graphs" : "", tokens, longest));
          }
        }
      }
    }
  }
}

TEST(ExpertModels, GraphsServeEveryRouting) {
  NEED_HOPPER();
  const Model model =
      make_random_model({.hidden = 64, .head_dim = 64, .vocab = 64, .change = test::use_sigmoid_experts}, 24);
  const auto decode = [&](bool graphs, int64_t* replayed) {
    CudaOptions options;
    options.graphs = graphs;
    options.replayed = replayed;
    const auto backend = make_cuda_backend(model, options);
    return test::decode(*backend, test::long_stacks(3, 0), {.tokens_per_step = 40, .pages = 2000});
  };
  int64_t replayed = 0;
  const Answers plain = decode(false, nullptr);
  test::expect_same(plain, decode(true, &replayed), "replayed");
  EXPECT_GT(replayed, 10);
}

TEST(ExpertModels, PackedWeightsGiveTheBitsOfExpandedOnes) {
  NEED_HOPPER();
  const auto one = [](ModelConfig& config) {
    use_wide(config);
    config.experts.per_token = 1;
  };
  for (const auto change : {use_wide, +one}) {
    const Model model =
        make_random_model({.layers = 3, .hidden = 64, .head_dim = 64, .vocab = 64, .change = change}, 28);
    for (const bool fp8 : {false, true}) {
      Answers right;
      for (const WeightStorage weights : {WeightStorage::expanded, WeightStorage::packed}) {
        const auto backend = make_cuda_backend(model, {.fp8 = fp8, .weights = weights, .reproducible = true});
        const Answers answers =
            test::decode(*backend, test::long_stacks(3, 0), {.tokens_per_step = 40, .pages = 2000});
        if (right.empty()) right = answers;
        test::expect_same(right, answers, fp8 ? "packed, fp8" : "packed");
      }
    }
  }
}

TEST(ExpertModels, WhatTheEngineCannotDoIsRefused) {
  NEED_GPU();
  const Model model = make_random_model({.change = use_shared}, 25);
  SKIP_UNLESS(test::gpu_capability() >= 89, test::Lacking::hopper, "a GPU before Ada");
  expect_refusal([&] { make_cuda_backend(model, {.fp8 = true}); },
                 {"model.dtype: fp8", "multiples of 16", "experts have 24", "bf16"});
  expect_refusal([] { make_cuda_backend(make_random_model({.change = test::use_experts}, 26), {}); },
                 {"multiples of 8", "engine.device: cpu"});
  const auto too_many = [](ModelConfig& config) {
    use_many(config);
    config.experts.count = 513;
    config.experts.per_token = 2;
  };
  expect_refusal([&] { make_cuda_backend(make_random_model({.change = too_many}, 27), {}); },
                 {"513 experts", "engine.device: cpu"});
}

}  // namespace
}  // namespace sheaf

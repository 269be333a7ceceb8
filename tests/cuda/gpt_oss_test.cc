// Whole models as gpt-oss: the CUDA engine beside the CPU's definition, in each kind of numbers and with
// weights in MXFP4.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpu/cpu_backend.h"
#include "cuda/base/devices.h"
#include "cuda/cuda_backend.h"
#include "io/model/model_files.h"
#include "tests/cuda/need_gpu.h"
#include "tests/cuda/side_by_side.h"
#include "tests/engine/decode.h"
#include "tests/errors.h"
#include "tests/model/golden.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::Answers;
using test::make_random_model;
using test::RandomModelShape;

/// In sizes that the kernels take, e4m3's included. All experts are chosen, so that no rounding changes a
/// choice.
void use_all(ModelConfig& config) {
  test::use_gpt_oss(config);
  config.experts.ffn = 48;
  config.experts.per_token = config.experts.count;
}
/// Windows that the longest prompts leave, and none.
void use_wide_windows(ModelConfig& config) {
  use_all(config);
  for (size_t i = 0; i < config.layers.size(); ++i) config.layers[i].window = i % 2 == 0 ? 21 : 0;
}
/// Sizes that end inside tiles and blocks, as 2,880 does.
void use_uneven(ModelConfig& config) {
  use_all(config);
  config.experts.ffn = 208;
}

// Heads of 8 go through the kernels for any GPU; those of 64 and 128 through Hopper's, where there is one.
constexpr RandomModelShape kShapes[] = {
    {.layers = 3, .hidden = 64, .vocab = 64, .change = use_all},
    {.layers = 3, .hidden = 64, .heads = 16, .head_dim = 64, .vocab = 64, .change = use_wide_windows},
    {.layers = 2,
     .hidden = 272,
     .heads = 8,
     .kv_heads = 1,
     .head_dim = 64,
     .vocab = 72,
     .change = use_uneven},
    {.layers = 3, .hidden = 64, .heads = 4, .head_dim = 128, .vocab = 64, .change = use_wide_windows},
};

void compare(const RandomModelShape& shape, CudaOptions options, double mean, double worst,
             const std::string& what) {
  const Model model = make_random_model(shape, 51);
  for (int kind = 0; kind < 6; ++kind) {  // the others pick among chains, which SideBySide does not follow
    const auto cpu = make_reference_backend(model), gpu = make_cuda_backend(model, options);
    test::SideBySide both(*cpu, *gpu);
    test::decode(both, test::random_stacks(5, kind),
                 {.tokens_per_step = kind % 2 == 0 ? 9 : 64, .pages = 400});
    both.errors.print(
        fmt::format("{}, hidden {}, heads of {}, kind {}", what, shape.hidden, shape.head_dim, kind));
    both.errors.expect_below(mean, worst, what);
  }
}

TEST(GptOss, AgreesInBf16) {
  NEED_GPU();
  for (const RandomModelShape& shape : kShapes) compare(shape, {}, 0.03, 0.15, "bf16");
}

TEST(GptOss, AgreesInOrder) {
  NEED_HOPPER();
  for (const RandomModelShape& shape : kShapes)
    compare(shape, {.reproducible = true}, 0.03, 0.15, "reproducible");
}

TEST(GptOss, AgreesWithKeysInFp8) {
  NEED_GPU();
  for (const RandomModelShape& shape : kShapes) compare(shape, {.fp8_keys = true}, 0.12, 0.5, "keys in FP8");
}

TEST(GptOss, AgreesInFp8) {
  NEED_GPU();
  SKIP_UNLESS(test::gpu_capability() >= 89, test::Lacking::hopper, "a GPU before Ada");
  // e4m3 has four bits less than bf16, whose error is 0.018.
  for (const RandomModelShape& shape : kShapes) compare(shape, {.fp8 = true}, 16 * 0.018, 0.8, "fp8");
}

/// Experts in MXFP4: packed ones give the bits of expanded ones, in bf16 and in FP8, whichever file they come
/// from.
TEST(GptOss, PackedMxfp4GivesTheBitsOfExpandedOnes) {
  NEED_HOPPER();
  for (const char* name : {"gpt_oss_mxfp4", "gpt_oss_mxfp4_gguf/model.gguf"}) {
    const Model model = load_model(golden(name));
    std::vector<Stack> stacks = test::random_stacks(5, 1);
    for (const bool fp8 : {false, true}) {
      Answers right;
      for (const WeightStorage weights : {WeightStorage::expanded, WeightStorage::packed}) {
        const auto backend = make_cuda_backend(model, {.fp8 = fp8, .weights = weights, .reproducible = true});
        EXPECT_EQ(backend->describe().find("weights packed") != std::string::npos,
                  weights == WeightStorage::packed);
        EXPECT_EQ(backend->describe().find("rows of MXFP4 need bf16") != std::string::npos, fp8)
            << backend->describe();
        const Answers answers = test::decode(*backend, stacks, {.tokens_per_step = 40, .pages = 2000});
        if (right.empty()) right = answers;
        test::expect_same(right, answers, fmt::format("{}{}", name, fp8 ? ", fp8" : ""));
      }
    }
  }
}

/// A layer whose rows E4M3 does not hold is bf16 in a model whose other layers are FP8.
TEST(GptOss, OneLayerInBf16AgreesToo) {
  NEED_GPU();
  SKIP_UNLESS(test::gpu_capability() >= 89, test::Lacking::hopper, "a GPU before Ada");
  Model model = load_model(golden("gpt_oss_mxfp4"));
  Matrix& down = model.layers[1].experts[3].down;
  std::vector<std::byte> blocks(static_cast<size_t>(down.rows * down.row_bytes()));
  down.read_stored(0, down.rows, blocks.data());
  ASSERT_EQ(down.cols, 64);
  blocks[0] = std::byte{125};  // 6 and 0.5, nineteen powers apart
  blocks[1] = std::byte{7};
  blocks[17] = std::byte{106};
  blocks[18] = std::byte{1};
  const auto kept = std::make_shared<std::vector<std::byte>>(std::move(blocks));
  model.files.push_back(kept);
  down.source = nullptr;
  down.data = kept->data();
  for (const WeightStorage weights : {WeightStorage::expanded, WeightStorage::packed}) {
    const auto cpu = make_reference_backend(model),
               gpu = make_cuda_backend(model, {.fp8 = true, .weights = weights});
    EXPECT_NE(gpu->describe().find(", 1 of "), std::string::npos) << gpu->describe();
    EXPECT_NE(gpu->describe().find("(the experts of 1 layer)"), std::string::npos) << gpu->describe();
    test::SideBySide both(*cpu, *gpu);
    test::decode(both, test::random_stacks(5, 1), {.tokens_per_step = 64, .pages = 400});
    both.errors.print("one layer in bf16");
    // As of all models in which rounding may choose another expert.
    both.errors.expect_below(0.4, 2, "one layer in bf16");
  }
}

TEST(GptOss, GraphsGiveTheSame) {
  NEED_HOPPER();
  const Model model = make_random_model(kShapes[1], 53);
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

TEST(GptOss, RandomWeightsOfItsShapeRun) {
  NEED_GPU();
  ModelConfig config = make_random_model(kShapes[1], 54).config;
  config.experts.ffn = 64;  // whole blocks of MXFP4
  config.vocab = 504;
  for (const WeightStorage weights : {WeightStorage::expanded, WeightStorage::packed}) {
    for (const bool fp8 : {false, true}) {
      if (fp8 && test::gpu_capability() < 89) continue;
      const auto backend = make_random_cuda_backend(config, {.fp8 = fp8, .weights = weights}, 7);
      const bool exact = fp8 && weights == WeightStorage::packed;
      EXPECT_EQ(backend->describe().find(", 0 of ") != std::string::npos, exact) << backend->describe();
      const Answers answers =
          test::decode(*backend, test::random_stacks(5, 1), {.tokens_per_step = 64, .pages = 400});
      EXPECT_FALSE(answers.empty());
      for (const auto& [key, answer] : answers) EXPECT_TRUE(std::isfinite(answer.logprob));
    }
  }
}

}  // namespace
}  // namespace sheaf

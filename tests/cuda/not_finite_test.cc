// Logits that are not finite: the device says so with the pick, and the engine ends the run.
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/engine/step_batch.h"
#include "cuda/base/device_memory.h"
#include "cuda/base/devices.h"
#include "cuda/cuda_backend.h"
#include "cuda/ops/ops.h"
#include "tests/cuda/need_gpu.h"
#include "tests/engine/decode.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using cuda::check, cuda::DeviceMemory;
using test::make_random_model;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
DeviceMemory<T> on_device(const std::vector<T>& host) {
  DeviceMemory<T> device(static_cast<int64_t>(host.size()));
  check(cudaMemcpy(device.data(), host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "upload");
  return device;
}

cuda::GreedyResult picked(const std::vector<float>& logits, const cuda::GreedyPick& pick,
                          const std::vector<int32_t>& allowed) {
  const auto row = on_device(logits);
  const auto picks = on_device(std::vector{pick});
  const auto list = on_device(allowed.empty() ? std::vector<int32_t>{0} : allowed);
  const DeviceMemory<cuda::GreedyResult> out(1);
  cuda::pick_greedy(row.data(), picks.data(), list.data(), 1, static_cast<int32_t>(logits.size()), out.data(),
                    nullptr);
  cuda::GreedyResult result;
  check(cudaMemcpy(&result, out.data(), sizeof result, cudaMemcpyDeviceToHost), "picked");
  return result;
}

TEST(CudaNotFinite, APickOfLogitsThatAreNotSoundHasNoLogProbability) {
  NEED_GPU();
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 3);
  const std::vector<int32_t> allowed{3, 17, 40};
  for (const size_t vocab : {61, 64, 4096, 9001})
    for (int i = 0; i < 60; ++i) {
      std::vector<float> logits(vocab);
      for (float& logit : logits) logit = normal(random);
      if (i % 2 == 0) logits[random() % vocab] = -kInfinity;
      const bool some = i % 3 == 1;
      const cuda::GreedyPick pick{0, some ? 3 : 0, i % 5 == 0, i % 10 == 0 ? 17 : -1, 0.5f};
      const auto good = picked(logits, pick, allowed);
      EXPECT_FALSE(std::isnan(good.logprob)) << vocab;
      const size_t at = i < 2 ? static_cast<size_t>(i) * (vocab - 1) : random() % vocab;
      for (const float odd : {NAN, -NAN, kInfinity}) {
        logits[at] = odd;
        const auto bad = picked(logits, pick, allowed);
        EXPECT_TRUE(std::isnan(bad.logprob)) << odd << " at " << at << " of " << vocab;
        EXPECT_TRUE(bad.token >= 0 && bad.token < static_cast<int32_t>(vocab));
      }
    }
  for (const float odd : {NAN, kInfinity, -kInfinity})
    EXPECT_TRUE(std::isnan(picked(std::vector<float>(4096, odd), {0, 0, 0, -1, 0}, {}).logprob)) << odd;
}

/// Every value of a weight replaced: finite, so that it loads, but too large to compute with.
void fill(Model& model, Matrix& weight, float value) {
  auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(weight.rows * weight.cols), value);
  weight.data = reinterpret_cast<const std::byte*>(values->data());
  model.files.push_back(std::move(values));
}

Model small_model() {
  return make_random_model({.layers = 2, .hidden = 64, .ffn = 96, .head_dim = 32, .vocab = 64}, 70);
}

void expect_unsound(const Model& model, const CudaOptions& cuda, int kind, float temperature) {
  const auto backend = make_cuda_backend(model, cuda);
  try {
    test::decode(*backend, test::long_stacks(1, kind),
                 {.tokens_per_step = 40, .pages = 2000, .temperature = temperature});
    ADD_FAILURE() << "the run did not end";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::fatal);
    EXPECT_NE(std::string(error.what()).find("not finite"), std::string::npos) << error.what();
  }
}

TEST(CudaNotFinite, EndsTheRunOfEveryMethod) {
  NEED_GPU();
  Model model = small_model();
  fill(model, model.final_norm, 3e38f);
  for (int kind = 0; kind < test::kKinds; ++kind)
    for (const float temperature : {0.0f, 0.7f}) {
      SCOPED_TRACE("kind " + std::to_string(kind));
      expect_unsound(model, {}, kind, temperature);
    }
}

/// Queries, keys and values are cut to what fp16 can hold, so theirs are left out.
TEST(CudaNotFinite, WeightsThatOverflowOnTheWayAreSeenAtTheEnd) {
  NEED_GPU();
  for (const auto weight : {&LayerWeights::o, &LayerWeights::up, &LayerWeights::down})
    for (const bool reproducible : {false, true}) {
      Model model = small_model();
      fill(model, model.layers[0].*weight, 3e38f);
      CudaOptions options;
      options.reproducible = reproducible;
      expect_unsound(model, options, 0, 0);
    }
  Model model = small_model();
  fill(model, model.embedding, 1e25f);  // the squares of its norm overflow
  expect_unsound(model, {}, 0, 0);
}

TEST(CudaNotFinite, WeightsThatAreNotFiniteAreRefusedByName) {
  NEED_GPU();
  for (const float odd : {NAN, kInfinity, -kInfinity, 3.4e38f}) {  // the last becomes infinite in bf16
    Model model = small_model();
    fill(model, model.layers[1].down, 1.0f);
    auto& values = model.layers[1].down;
    std::memcpy(const_cast<std::byte*>(values.data) + 4 * 77, &odd, sizeof odd);
    values.file = "model.safetensors";
    try {
      make_cuda_backend(model, {});
      ADD_FAILURE() << odd << " was loaded";
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::input);
      EXPECT_NE(std::string(error.what()).find("model.safetensors: tensor " + values.name), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace sheaf

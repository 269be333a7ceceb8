#include "io/machine/backend_kinds.h"

#include <gtest/gtest.h>
#include <set>

#include "core/model/shapes.h"
#include "io/jobs/choose_device.h"
#include "tests/errors.h"

namespace sheaf {
namespace {

const Device kAuto{}, kCpu{Device::Kind::cpu}, kCuda{Device::Kind::cuda};

void expect_complete(const BackendKind& kind) {
  EXPECT_EQ(parse_device(kind.word, "--device").kind, kind.kind) << kind.word;
  EXPECT_TRUE(kind.devices && kind.driver_trouble && kind.device_trouble && kind.memory && kind.pool_bytes &&
              kind.footprint && kind.make && kind.make_random && kind.examine)
      << kind.word;
  const Footprint footprint = kind.footprint(shape_by_name("qwen3-8b"), {});
  EXPECT_GT(footprint.kv_bytes_per_token, 0) << kind.word;
  EXPECT_GT(footprint.preferred_tokens, 0) << kind.word;
  EXPECT_GT(kind.pool_bytes(int64_t{8} << 30), 0) << kind.word;
  EXPECT_LT(kind.pool_bytes(int64_t{8} << 30), int64_t{8} << 30) << kind.word;
  EXPECT_FALSE(kind.examine().empty()) << kind.word;
}

TEST(BackendKinds, EveryEntryOfTheTableIsComplete) {
  std::set<Device::Kind> kinds;
  std::set<std::string> words;
  for (const BackendKind& kind : backend_kinds()) {
    expect_complete(kind);
    EXPECT_EQ(&backend_kind(kind.kind), &kind);
    kinds.insert(kind.kind);
    words.insert(kind.word);
  }
  EXPECT_EQ(kinds, (std::set{Device::Kind::cpu, Device::Kind::cuda}));
  EXPECT_EQ(words.size(), kinds.size());
  expect_complete(missing_cuda_kind());
  EXPECT_FALSE(backend_kind(Device::Kind::cpu).gpu);
  EXPECT_TRUE(backend_kind(Device::Kind::cpu).missing.empty());
  EXPECT_EQ(backend_kind(Device::Kind::cpu).devices().size(), 1u);
}

TEST(BackendKinds, ABackendOfTheTableComputes) {
  const BackendKind& cpu = backend_kind(Device::Kind::cpu);
  ModelConfig config = shape_by_name("llama-160m");
  config.layers.resize(1);
  config.vocab = 100;
  const BackendOptions two{.devices = {0, 0}, .threads = 2, .precision = Precision::int8};
  const Backends made = cpu.make(make_random_model(config, 1), two);
  ASSERT_EQ(made.size(), 2u);
  for (const auto& backend : made)
    EXPECT_EQ(backend->kv_bytes_per_token(), cpu.footprint(config, two).kv_bytes_per_token);
  const auto random = cpu.make_random(config, {.reference = true}, 1);
  EXPECT_EQ(random->kv_bytes_per_token(), cpu.footprint(config, {.reference = true}).kv_bytes_per_token);
  StepBatch batch;
  batch.tokens = {5};
  batch.positions = {0};
  batch.kv_slots = {0};
  batch.spans.push_back({0, 1});
  batch.pages = {0};
  batch.tiles.push_back({0, 0, 1});
  batch.tile_rows.push_back({0, 1});
  batch.picks.push_back(Pick{.row = 0});
  std::vector<Picked> picked(1);
  random->allocate_kv(1, kPageSize);
  random->step(batch, picked);
  EXPECT_LT(picked[0].token, config.vocab);
  EXPECT_LT(picked[0].logprob, 0);
}

TEST(BackendKinds, AProgramWithoutCudaRefusesGpusAndWhatOnlyTheyCompute) {
  const BackendKind missing = missing_cuda_kind();
  expect_refusal([&] { choose_device(kCuda, Precision::automatic, missing); },
                 {"engine.device: cuda cannot be used: this program was built without CUDA; use a build with "
                  "CUDA (the image of Dockerfile.cuda), or --device cpu"});
  for (const Device& device : {kAuto, kCuda})
    expect_refusal([&] { choose_device(device, Precision::fp8, missing); },
                   {"model.dtype: fp8 works only on a GPU, but this program was built without CUDA"});
  const DeviceChoice chosen = choose_device(kAuto, Precision::automatic, missing);
  EXPECT_EQ(chosen.kind->kind, Device::Kind::cpu);
  EXPECT_EQ(chosen.devices, std::vector{0});
  EXPECT_EQ(chosen.notice.empty(), !has_nvidia_driver());
}

/// A program with CUDA on a machine with two GPUs, of which the second cannot be used.
BackendKind two_gpus() {
  BackendKind gpu = missing_cuda_kind();
  gpu.missing.clear();
  gpu.devices = [] { return std::vector<std::string>{"first", "second"}; };
  gpu.device_trouble = [](int device) { return std::string(device == 1 ? "cuda:1 is sm_1" : ""); };
  return gpu;
}

TEST(BackendKinds, AutoTakesTheFirstGpuAndCpuNumbersStayOnTheCpu) {
  const BackendKind gpu = two_gpus();
  const DeviceChoice first = choose_device(kAuto, Precision::automatic, gpu);
  EXPECT_EQ(first.kind, &gpu);
  EXPECT_EQ(first.devices, std::vector{0});
  EXPECT_EQ(choose_device(kAuto, Precision::int8, gpu).kind->kind, Device::Kind::cpu);
  EXPECT_EQ(choose_device(parse_device("cpu:3", ""), Precision::automatic, gpu).devices.size(), 3u);
  expect_refusal([&] { choose_device(kCuda, Precision::int8, gpu); },
                 {"model.dtype: int8 works only on the CPU"});
  expect_refusal([&] { choose_device(kCpu, Precision::bf16, gpu); }, {"but engine.device is cpu"});
  expect_refusal([&] { choose_device(parse_device("cuda:2", ""), Precision::automatic, gpu); },
                 {"engine.device: cuda:2 does not exist; this machine has 2 CUDA devices"});
  expect_refusal([&] { choose_device(parse_device("cuda:all", ""), Precision::automatic, gpu); },
                 {"engine.device: cuda:1 is sm_1; or set it to cpu"});
}

}  // namespace
}  // namespace sheaf

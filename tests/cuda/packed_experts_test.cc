// Packed experts beside expanded ones: the same bits, whichever experts a step uses and however few are
// expanded at once.
#include <cstring>
#include <gtest/gtest.h>
#include <random>

#include "core/model/model.h"
#include "cuda/base/devices.h"
#include "cuda/loaded_model.h"
#include "tests/cuda/copies.h"
#include "tests/cuda/need_gpu.h"
#include "tests/model/finite_blocks.h"
#include "tests/random_model.h"

namespace sheaf::cuda {
namespace {

constexpr DType kTypes[] = {DType::f32,      DType::bf16,     DType::q8_0, DType::q4_0,   DType::q4_k,
                            DType::q6_k,     DType::int4_32,  DType::nf4,  DType::mxfp4,  DType::q2_k,
                            DType::int4_128, DType::e4m3_128, DType::q3_k, DType::iq4_nl, DType::iq4_xs};
constexpr int32_t kExperts = 6, kFfn = 256, kHidden = 512;

/// A model of one layer whose experts are random blocks of one type.
Model make_model(DType dtype) {
  const auto change = [](ModelConfig& config) {
    config.experts = {.count = kExperts, .per_token = 2, .ffn = kFfn, .normalized = true};
    config.layers.resize(1);
    config.layers[0].experts = true;
  };
  Model model =
      test::make_random_model({.layers = 1, .hidden = kHidden, .head_dim = 64, .change = change}, 41);
  std::mt19937_64 random(static_cast<uint64_t>(dtype) + 1);
  for (ExpertWeights& expert : model.layers[0].experts)
    for (Matrix* matrix : {&expert.gate, &expert.up, &expert.down}) {
      matrix->dtype = dtype;
      auto blocks =
          std::make_shared<std::vector<std::byte>>(static_cast<size_t>(matrix->rows * matrix->row_bytes()));
      // Without the highest bit of their exponents, halves and floats are small.
      fill_with_finite_blocks(dtype, blocks->data(), matrix->rows * matrix->cols / block_values(dtype),
                              random, 0xbfff);
      // Scales of MXFP4 lie so close that E4M3 holds every row.
      for (size_t at = 0; dtype == DType::mxfp4 && at < blocks->size(); at += 17)
        (*blocks)[at] = static_cast<std::byte>(120 + std::to_integer<int>((*blocks)[at]) % 8);
      matrix->data = blocks->data();
      model.files.push_back(blocks);
    }
  return model;
}

template <class T>
std::vector<T> part(const T* from, int64_t count) {
  std::vector<T> host(static_cast<size_t>(count));
  check(cudaMemcpy(host.data(), from, host.size() * sizeof(T), cudaMemcpyDeviceToHost), "part");
  return host;
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TEST(PackedExperts, ExpandToTheSameBits) {
  NEED_GPU();
  // Experts without a row: the first, two in the middle, none, all but the last.
  const std::vector<std::vector<int32_t>> steps{
      {0, 0, 3, 3, 3, 4, 9}, {0, 1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 0, 5}};
  for (const DType dtype : kTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    const Model model = make_model(dtype);
    ASSERT_TRUE(can_stay_packed(model));
    for (const bool fp8 : {false, true}) {
      const DeviceWeights whole = upload_weights(model, {fp8, false});
      LoadedModel packed(model.config, upload_weights(model, {fp8, true}), fp8, ProductKernels::ours);
      ASSERT_TRUE(packed.packed());
      EXPECT_GE(weight_bytes(model, {fp8, true}), packed.weights.bytes());
      const DeviceExperts &right = whole.layers[0].experts, &stored = packed.weights.layers[0].experts;
      for (const int32_t at_once : {kExperts, 4, 1}) {
        for (const std::vector<int32_t>& offsets : steps) {
          const auto d_offsets = test::to_device(offsets);
          for (const auto& [all, parts] :
               {std::pair{&right.gate_up, &stored.gate_up}, {&right.down, &stored.down}}) {
            const int64_t each = all->values() / kExperts, rows = all->scales.size() / kExperts;
            ASSERT_EQ(all->values(), parts->values());
            if (fp8) packed.expanded8 = test::poisoned<e4m3>(at_once * each);
            if (!fp8) packed.expanded = test::poisoned<bf16>(at_once * each);
            if (parts->packed.empty()) continue;  // what is e4m3 or bf16 in the file is so from the start
            EXPECT_EQ(packed.experts_at_once(*parts), at_once);
            for (int32_t first = 0; first < kExperts; first += at_once) {
              const ExpertRange range{first, std::min(at_once, kExperts - first)};
              const bf16* wide = nullptr;
              Fp8Weight narrow;
              if (fp8)
                narrow = packed.fp8_weight(*parts, range, d_offsets.data());
              else
                wide = packed.bf16_weight(*parts, range, d_offsets.data());
              check(cudaDeviceSynchronize(), "expanding");
              for (int32_t i = 0; i < range.count; ++i) {
                const int32_t expert = first + i;
                if (offsets[static_cast<size_t>(expert)] == offsets[static_cast<size_t>(expert) + 1])
                  continue;
                if (fp8) {
                  EXPECT_TRUE(same(part(narrow.values + i * each, each),
                                   part(all->narrow.data() + expert * each, each)))
                      << "expert " << expert << ", " << at_once << " at once";
                  EXPECT_TRUE(same(part(narrow.scales + i * rows, rows),
                                   part(all->scales.data() + expert * rows, rows)));
                } else {
                  EXPECT_TRUE(same(part(wide + i * each, each), part(all->wide.data() + expert * each, each)))
                      << "expert " << expert << ", " << at_once << " at once";
                }
              }
            }
          }
        }
      }
    }
  }
}

/// The values of a layer's down matrices as the file has them.
std::vector<float> down_values(const Model& model) {
  std::vector<float> all;
  for (const ExpertWeights& expert : model.layers[0].experts)
    for (const float value : expert.down.read_all()) all.push_back(value);
  return all;
}

TEST(PackedExperts, Mxfp4IsExactInBothKindsOfNumbers) {
  NEED_GPU();
  const Model model = make_model(DType::mxfp4);
  const std::vector<float> right = down_values(model);
  for (const bool packed : {false, true}) {
    for (const bool fp8 : {false, true}) {
      SCOPED_TRACE(testing::Message() << (packed ? "packed" : "expanded") << (fp8 ? ", fp8" : ""));
      LoadedModel loaded(model.config, upload_weights(model, {fp8, packed}), fp8, ProductKernels::ours);
      const DeviceExperts& experts = loaded.weights.layers[0].experts;
      EXPECT_EQ(experts.narrow, fp8);
      EXPECT_EQ(experts.down.packed.empty(), !packed);
      EXPECT_EQ(loaded.weights.mxfp4.rows, fp8 ? kExperts * (2 * kFfn + kHidden) : 0);
      EXPECT_EQ(loaded.weights.mxfp4.inexact, 0);
      EXPECT_GE(weight_bytes(model, {fp8, packed}), loaded.weights.bytes());
      const auto offsets = test::to_device(std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6});
      std::vector<float> got;
      if (fp8) {
        const Fp8Weight narrow = loaded.fp8_weight(experts.down, {0, kExperts}, offsets.data());
        check(cudaDeviceSynchronize(), "expanding");
        const auto values = part(narrow.values, experts.down.values());
        const auto scales = part(narrow.scales, int64_t{kExperts} * kHidden);
        for (size_t i = 0; i < values.size(); ++i)
          got.push_back(static_cast<float>(values[i]) * scales[i / kFfn]);
      } else {
        const bf16* const wide = loaded.bf16_weight(experts.down, {0, kExperts}, offsets.data());
        check(cudaDeviceSynchronize(), "expanding");
        for (const bf16 value : part(wide, experts.down.values())) got.push_back(__bfloat162float(value));
      }
      EXPECT_EQ(got, right);
    }
  }
}

TEST(PackedExperts, RowsThatE4m3DoesNotHoldMakeTheirLayerBf16) {
  NEED_GPU();
  // The first row of one expert's down: 6 beside 0.5 of a scale so many powers smaller.
  for (const int apart : {14, 15}) {
    Model model = make_model(DType::mxfp4);
    auto* blocks = const_cast<std::byte*>(model.layers[0].experts[2].down.data);
    std::fill_n(blocks, kFfn / 32 * 17, std::byte{0});
    blocks[0] = std::byte{130};
    blocks[1] = std::byte{7};
    blocks[17] = static_cast<std::byte>(130 - apart);
    blocks[20] = std::byte{1};
    const bool exact = apart == 14;
    for (const bool packed : {false, true}) {
      LoadedModel loaded(model.config, upload_weights(model, {true, packed}), true, ProductKernels::ours);
      const DeviceExperts& experts = loaded.weights.layers[0].experts;
      EXPECT_EQ(experts.narrow, exact);
      EXPECT_EQ(loaded.weights.mxfp4.inexact, exact ? 0 : 1);
      EXPECT_EQ(loaded.weights.mxfp4.wide_layers, exact ? 0 : 1);
      EXPECT_EQ(loaded.wide_experts(), !exact);
      if (exact) continue;
      const auto offsets = test::to_device(std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6});
      const bf16* const wide = loaded.bf16_weight(experts.down, {0, kExperts}, offsets.data());
      check(cudaDeviceSynchronize(), "expanding");
      std::vector<float> got;
      for (const bf16 value : part(wide, experts.down.values())) got.push_back(__bfloat162float(value));
      EXPECT_EQ(got, down_values(model));
      // Gate and up lie as bf16 products read them.
      const DeviceWeights right = upload_weights(model, {false, false});
      const bf16* const both = loaded.bf16_weight(experts.gate_up, {0, kExperts}, offsets.data());
      check(cudaDeviceSynchronize(), "expanding");
      EXPECT_TRUE(same(part(both, experts.gate_up.values()),
                       part(right.layers[0].experts.gate_up.wide.data(), experts.gate_up.values())));
    }
  }
}

TEST(PackedExperts, ExpertsWithoutRowsAreNotExpanded) {
  NEED_GPU();
  const Model model = make_model(DType::q4_k);
  LoadedModel packed(model.config, upload_weights(model, {false, true}), false, ProductKernels::ours);
  const DeviceMatrix& down = packed.weights.layers[0].experts.down;
  const auto offsets = test::to_device(std::vector<int32_t>{0, 0, 2, 2, 2, 2, 3});
  packed.expanded = test::poisoned<bf16>(down.values());
  const bf16* const wide = packed.bf16_weight(down, {0, kExperts}, offsets.data());
  check(cudaDeviceSynchronize(), "expanding");
  const int64_t each = down.values() / kExperts;
  for (int32_t expert = 0; expert < kExperts; ++expert)
    EXPECT_EQ(std::isnan(__bfloat162float(part(wide + expert * each, each).front())),
              expert != 1 && expert != 5)
        << expert;
}

TEST(PackedExperts, ThoseThatAreNotAlikeAreExpandedOnce) {
  Model mixed = make_model(DType::q4_0);
  EXPECT_TRUE(can_stay_packed(mixed));
  const Model other = make_model(DType::q8_0);
  mixed.layers[0].experts[3].down = other.layers[0].experts[3].down;
  EXPECT_FALSE(can_stay_packed(mixed));
  Model adapted = make_model(DType::q4_0);
  adapted.layers[0].experts[2].up.adapter = std::make_shared<LowRank>();
  EXPECT_FALSE(can_stay_packed(adapted));
}

}  // namespace
}  // namespace sheaf::cuda

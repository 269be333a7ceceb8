// Keys and values that leave the device's pool and come back.
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>

#include "cuda/base/devices.h"
#include "cuda/base/floats.h"
#include "cuda/cuda_backend.h"
#include "tests/cuda/need_gpu.h"
#include "tests/engine/decode.h"
#include "tests/engine/shelf_store.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

TEST(StoredKeys, AreTheSameBytesInOtherSlots) {
  NEED_GPU();
  for (const bool fp8_keys : {false, true}) {
    const Model model = test::make_random_model({.hidden = 64, .head_dim = 64, .vocab = 504}, 3);
    const auto backend = make_cuda_backend(model, {.fp8_keys = fp8_keys});
    backend->allocate_kv(40, 16);
    std::vector<int32_t> from, to;
    for (int32_t i = 0; i < 150; ++i) {
      from.push_back(i);
      to.push_back(639 - 3 * i);
    }
    const auto bytes = static_cast<size_t>(backend->kv_slot_bytes(KvForm::computed)) * from.size();
    std::vector<std::byte> first(bytes), second(bytes);
    for (size_t i = 0; i < bytes; ++i) first[i] = static_cast<std::byte>(i * 131 + i / 251);
    backend->write_kv(from, first, KvForm::computed);
    backend->read_kv(from, second, KvForm::computed);
    EXPECT_EQ(first, second);
    backend->write_kv(to, second, KvForm::computed);
    std::ranges::fill(second, std::byte{});
    backend->read_kv(to, second, KvForm::computed);
    EXPECT_EQ(first, second);
  }
}

TEST(StoredKeys, RoundedOnesAreWithinHalfAScale) {
  NEED_GPU();
  constexpr size_t dim = 64;
  const Model model = test::make_random_model({.hidden = 64, .head_dim = dim, .vocab = 504}, 3);
  const auto backend = make_cuda_backend(model, {});
  backend->allocate_kv(40, 16);
  std::vector<int32_t> from, to;
  for (int32_t i = 0; i < 150; ++i) {
    from.push_back(i);
    to.push_back(639 - 3 * i);
  }
  const auto numbers = static_cast<size_t>(backend->kv_slot_bytes(KvForm::computed)) * from.size() / 2;
  std::vector<std::byte> rounded(static_cast<size_t>(backend->kv_slot_bytes(KvForm::rounded)) * from.size());
  EXPECT_EQ(rounded.size(), numbers / dim * (dim + sizeof(float)));
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<cuda::f16> x(numbers), y(numbers);
  for (size_t i = 0; i < numbers; ++i)
    x[i] = __float2half(normal(random) * std::exp2(static_cast<float>(i / dim % 20) - 12) *
                        (i % 199 == 0 ? 30.0f : 1.0f));
  std::fill_n(x.begin(), dim, __float2half(0));
  x[dim + 3] = __float2half(NAN);
  backend->write_kv(from, std::as_bytes(std::span(x)), KvForm::computed);
  backend->read_kv(from, rounded, KvForm::rounded);
  backend->write_kv(to, rounded, KvForm::rounded);
  backend->read_kv(to, std::as_writable_bytes(std::span(y)), KvForm::computed);
  EXPECT_TRUE(std::isnan(__half2float(y[dim + 3])));
  for (size_t first = 0; first < numbers; first += dim) {
    if (first == dim) continue;
    float top = 0;
    for (size_t i = first; i < first + dim; ++i) top = std::max(top, std::abs(__half2float(x[i])));
    // Half a scale, and what fp16 rounds.
    for (size_t i = first; i < first + dim; ++i)
      EXPECT_LE(std::abs(__half2float(x[i]) - __half2float(y[i])),
                top / 127 * 0.5001f + std::abs(__half2float(y[i])) / 2048 + 6e-8f)
          << i;
  }
}

TEST(StoredKeys, RoundedOnesGiveTheSameAnswersInEveryRunThatReadsThem) {
  NEED_HOPPER();
  for (uint32_t seed = 0; seed < 2; ++seed) {
    const Model model = test::make_random_model({.hidden = 64, .head_dim = 64, .vocab = 504}, seed);
    for (int kind = 0; kind < test::kKinds; ++kind) {
      const auto stacks = test::random_stacks(seed, kind);
      EngineOptions options{.tokens_per_step = 40, .pages = 2000, .seed = seed};
      const auto make = [&] { return make_cuda_backend(model, {.reproducible = true}); };
      const test::Answers plain = test::decode(*make(), stacks, options);
      test::ShelfStore store(KvForm::rounded);
      options.store = &store;
      const std::string what = fmt::format("seed {}, kind {}", seed, kind);
      test::expect_same(plain, test::decode(*make(), stacks, options), what + ", empty store");
      EngineStats stats;
      const test::Answers rounded = test::decode(*make(), stacks, options, &stats);
      EXPECT_EQ(stats.read_tokens, store.tokens_kept) << what;
      options.tokens_per_step = 11;
      test::expect_same(rounded, test::decode(*make(), stacks, options), what + ", another step");
    }
  }
}

TEST(StoredKeys, AnswersAreTheSameToTheBit) {
  NEED_HOPPER();
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const bool fp8_keys = seed % 2 == 1;
    const Model model = test::make_random_model({.hidden = 64, .head_dim = 64, .vocab = 504}, seed);
    for (int kind = 0; kind < test::kKinds; ++kind) {
      const auto stacks = test::random_stacks(seed, kind);
      EngineOptions options{.tokens_per_step = 40, .pages = 2000, .seed = seed};
      const auto make = [&] {
        return make_cuda_backend(model, {.fp8_keys = fp8_keys, .reproducible = true});
      };
      EngineStats plain, stored;
      const test::Answers expected = test::decode(*make(), stacks, options, &plain);
      test::ShelfStore store;
      options.store = &store;
      const std::string what = fmt::format("seed {}, kind {}", seed, kind);
      test::expect_same(expected, test::decode(*make(), stacks, options), what + ", empty store");
      for (const int32_t rows : {40, 11}) {
        options.tokens_per_step = rows;
        store.mood = rows == 11 ? test::ShelfStore::Mood::slow : test::ShelfStore::Mood::ready;
        test::expect_same(expected, test::decode(*make(), stacks, options, &stored), what + ", full store");
        EXPECT_EQ(stored.prefill_tokens + stored.read_tokens, plain.prefill_tokens) << what;
      }
    }
  }
}

}  // namespace
}  // namespace sheaf

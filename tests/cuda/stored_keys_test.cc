// Keys and values that leave the device's pool and come back.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cuda/base/devices.h"
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
    const auto bytes = static_cast<size_t>(backend->kv_slot_bytes()) * from.size();
    std::vector<std::byte> first(bytes), second(bytes);
    for (size_t i = 0; i < bytes; ++i) first[i] = static_cast<std::byte>(i * 131 + i / 251);
    backend->write_kv(from, first);
    backend->read_kv(from, second);
    EXPECT_EQ(first, second);
    backend->write_kv(to, second);
    std::ranges::fill(second, std::byte{});
    backend->read_kv(to, second);
    EXPECT_EQ(first, second);
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

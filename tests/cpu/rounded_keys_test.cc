// Keys and values that leave a pool in 8 bits come back within half a scale.
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "cpu/cpu_backend.h"
#include "cpu/int_kv_pool.h"
#include "cpu/kv_pool.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

std::vector<float> random_vector(size_t size, std::mt19937& random) {
  std::normal_distribution<float> normal(0, std::exp2(static_cast<float>(random() % 40) - 20));
  std::vector<float> x(size);
  for (float& each : x) each = normal(random);
  if (random() % 3 == 0) x[random() % size] *= 100;  // as keys have them
  return x;
}

float scale_of(const float* x, size_t size) {
  float top = 0;
  for (size_t i = 0; i < size; ++i) top = std::max(top, std::abs(x[i]));
  return top / 127;
}

/// `more`: of a scale, that arithmetic may add.
void expect_close(const float* x, const float* y, size_t size, float more) {
  const float scale = scale_of(x, size);
  for (size_t i = 0; i < size; ++i) EXPECT_LE(std::abs(x[i] - y[i]), scale * (0.5f + more)) << x[i];
}

TEST(RoundedKeys, AreWithinHalfAScale) {
  std::mt19937 random(1);
  for (const size_t size : {size_t{1}, size_t{16}, size_t{20}, size_t{64}, size_t{128}, size_t{129}}) {
    const auto length = static_cast<int64_t>(size);
    EXPECT_LE(rounded_bytes(length), 4 + length + 15);
    for (int round = 0; round < 200; ++round) {
      const std::vector<float> x = random_vector(size, random);
      std::vector<std::byte> bytes(static_cast<size_t>(rounded_bytes(length)), std::byte{99});
      std::vector<float> y(size);
      round_vector(x.data(), length, bytes.data());
      float scale;
      std::memcpy(&scale, bytes.data(), sizeof scale);
      EXPECT_EQ(scale, scale_of(x.data(), size));
      expand_vector(bytes.data(), length, y.data());
      expect_close(x.data(), y.data(), size, 1e-5f);
    }
  }
}

TEST(RoundedKeys, ZerosStayAndNanPropagates) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<std::byte> bytes(static_cast<size_t>(rounded_bytes(8)));
  for (const float odd : {0.0f, NAN, kInfinity, -kInfinity, 1e-45f}) {
    const std::vector<float> x = {0, 0, 0, odd, 0, 0, 0, 0};
    std::vector<float> y(8);
    round_vector(x.data(), 8, bytes.data());
    expand_vector(bytes.data(), 8, y.data());
    if (std::isfinite(odd)) {
      EXPECT_NEAR(y[3], odd, 1e-44f);
    } else {
      EXPECT_FALSE(std::isfinite(y[3]));
    }
  }
}

TEST(RoundedKeys, APoolOfWholeNumbersGivesItsNumbersBack) {
  std::mt19937 random(2);
  for (const IntKernels* kernels : all_int_kernels()) {
    if (kernels->panels.chunk != IntKvPool::kChunk) continue;
    for (const int32_t head_dim : {16, 20, 64, 128}) {
      ModelConfig config;
      config.layers.resize(2);
      config.kv_heads = 3;
      config.head_dim = head_dim;
      IntKvPool pool(config, *kernels, 4, 16);
      const auto size = static_cast<size_t>(head_dim);
      for (int64_t place = 0; place < 64; ++place) {
        const std::vector<float> key = random_vector(size, random), value = random_vector(size, random);
        pool.write(1, place % 3, place, key.data(), value.data());
        std::vector<float> key_back(size), value_back(size);
        pool.read(1, place % 3, place, key_back.data(), value_back.data());
        for (size_t d = 0; d < size; ++d) {
          EXPECT_NEAR(key_back[d], key[d], scale_of(key.data(), size) / 500) << kernels->name;
          EXPECT_NEAR(value_back[d], value[d], scale_of(value.data(), size) / 500) << kernels->name;
        }
      }
    }
  }
}

TEST(RoundedKeys, ComeBackWithinHalfAScaleFromEveryKindOfPool) {
  std::mt19937 random(3);
  const Model model = test::make_random_model({}, 3);
  const auto size = static_cast<size_t>(model.config.head_dim);
  const std::vector<int32_t> from = {0, 3, 17, 40}, to = {5, 18, 2, 63};
  for (const Precision precision : {Precision::f32, Precision::int16, Precision::int8}) {
    const auto backend = make_quick_backend(model, 1, precision);
    backend->allocate_kv(4, 16);
    const auto bytes_of = [&](KvForm form) {
      return std::vector<std::byte>(from.size() * static_cast<size_t>(backend->kv_slot_bytes(form)));
    };
    std::vector<std::byte> rounded = bytes_of(KvForm::rounded), again = rounded;
    const auto each_vector = [&](auto&& visit) {
      const auto step = static_cast<size_t>(rounded_bytes(model.config.head_dim));
      for (size_t at = 0; at < rounded.size(); at += step) visit(at);
    };
    each_vector([&](size_t at) {
      round_vector(random_vector(size, random).data(), model.config.head_dim, rounded.data() + at);
    });
    backend->write_kv(from, rounded, KvForm::rounded);
    backend->read_kv(from, again, KvForm::rounded);
    each_vector([&](size_t at) {
      std::vector<float> x(size), y(size);
      expand_vector(rounded.data() + at, model.config.head_dim, x.data());
      expand_vector(again.data() + at, model.config.head_dim, y.data());
      for (size_t i = 0; i < size; ++i) EXPECT_NEAR(x[i], y[i], scale_of(x.data(), size) * 1e-4f);
    });
    // Exactly as they lie in one place, they lie in another, and so round the same way.
    std::vector<std::byte> exact = bytes_of(KvForm::computed);
    EXPECT_GT(exact.size(), rounded.size());
    backend->read_kv(from, exact, KvForm::computed);
    backend->write_kv(to, exact, KvForm::computed);
    std::vector<std::byte> there = rounded;
    backend->read_kv(to, there, KvForm::rounded);
    EXPECT_EQ(there, again);
    if (precision != Precision::f32) continue;
    // fp32 as computed: the key, then the value.
    std::vector<float> x(exact.size() / sizeof(float)), y(x.size());
    for (size_t i = 0; i < x.size(); i += size) {
      const std::vector<float> one = random_vector(size, random);
      std::ranges::copy(one, x.begin() + static_cast<std::ptrdiff_t>(i));
    }
    backend->write_kv(from, std::as_bytes(std::span(x)), KvForm::computed);
    backend->read_kv(from, rounded, KvForm::rounded);
    backend->write_kv(to, rounded, KvForm::rounded);
    backend->read_kv(to, std::as_writable_bytes(std::span(y)), KvForm::computed);
    for (size_t i = 0; i < x.size(); i += size) expect_close(x.data() + i, y.data() + i, size, 1e-5f);
  }
}

}  // namespace
}  // namespace sheaf

// Our matrix products with their epilogues against fp64 sums of the same bf16 values.
#include "cuda/gemm/gemm.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "cuda/base/device_memory.h"
#include "cuda/base/devices.h"
#include "cuda/ops/ops.h"
#include "tests/cuda/activated.h"
#include "tests/cuda/need_gpu.h"

namespace sheaf {
namespace {

using namespace cuda;

/// Our kernels must run on every GPU of capability 9.0.
#define NEED_OUR_PRODUCTS() \
  NEED_HOPPER();            \
  ASSERT_TRUE(hopper_products())

TEST(HopperGemm, EqualsPlainSums) {
  NEED_OUR_PRODUCTS();
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 1);
  struct Size {
    int64_t m, n, k;
  };
  for (const Size size : {Size{1, 16, 8},
                          {128, 256, 64},
                          {129, 272, 72},
                          {300, 512, 200},
                          {513, 784, 1000},
                          {2500, 1040, 136}}) {
    std::vector<bf16> a(static_cast<size_t>(size.m * size.k)), w(static_cast<size_t>(size.n * size.k));
    for (bf16& value : a) value = __float2bfloat16(normal(random));
    for (bf16& value : w) value = __float2bfloat16(normal(random) / std::sqrt(static_cast<float>(size.k)));
    DeviceMemory<bf16> da(size.m * size.k), dw(size.n * size.k);
    check(cudaMemcpy(da.data(), a.data(), a.size() * 2, cudaMemcpyHostToDevice), "a");
    check(cudaMemcpy(dw.data(), w.data(), w.size() * 2, cudaMemcpyHostToDevice), "w");
    // A sample of rows, all columns.
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < size.m; row += std::max<int64_t>(1, size.m / 37)) rows.push_back(row);
    rows.push_back(size.m - 1);
    std::vector<std::vector<double>> right;
    for (int64_t row : rows) {
      std::vector<double> sums(static_cast<size_t>(size.n), 0.0);
      for (int64_t col = 0; col < size.n; ++col)
        for (int64_t i = 0; i < size.k; ++i)
          sums[static_cast<size_t>(col)] +=
              static_cast<double>(__bfloat162float(a[static_cast<size_t>(row * size.k + i)])) *
              static_cast<double>(__bfloat162float(w[static_cast<size_t>(col * size.k + i)]));
      right.push_back(std::move(sums));
    }
    for (const Epilogue epilogue :
         {Epilogue::store, Epilogue::store_floats, Epilogue::swiglu, Epilogue::geglu, Epilogue::add}) {
      const bool add = epilogue == Epilogue::add, floats = add || epilogue == Epilogue::store_floats;
      const int64_t out_cols = is_gated(epilogue) ? size.n / 2 : size.n;
      const DeviceMemory<float> out(size.m * size.n);
      std::vector<float> before(static_cast<size_t>(size.m * size.n), 3.0f);
      if (add)
        check(cudaMemcpy(out.data(), before.data(), before.size() * 4, cudaMemcpyHostToDevice), "out");
      else
        check(cudaMemset(out.data(), 0xff, static_cast<size_t>(out.size()) * 4), "poison");
      ASSERT_TRUE(
          multiply_hopper(epilogue, da.data(), dw.data(), size.m, size.n, size.k, out.data(), nullptr));
      check(cudaDeviceSynchronize(), "product");
      std::vector<float> got(static_cast<size_t>(size.m * size.n));
      check(cudaMemcpy(got.data(), out.data(), got.size() * 4, cudaMemcpyDeviceToHost), "result");
      double error = 0, square = 0;
      for (size_t i = 0; i < rows.size(); ++i) {
        for (int64_t col = 0; col < out_cols; ++col) {
          const auto at = static_cast<size_t>(rows[i] * out_cols + col);
          double expected = right[i][static_cast<size_t>(col)];
          if (is_gated(epilogue)) {
            const int64_t gate = col / 8 * 16 + col % 8;
            expected = test::activated(activation_of(epilogue), right[i][static_cast<size_t>(gate)]) *
                       right[i][static_cast<size_t>(gate + 8)];
          }
          const double value =
              floats ? static_cast<double>(got[at]) - (add ? 3.0 : 0.0)
                     : static_cast<double>(__bfloat162float(reinterpret_cast<const bf16*>(got.data())[at]));
          error += (value - expected) * (value - expected);
          square += expected * expected;
        }
      }
      const double relative = std::sqrt(error / square);
      EXPECT_LT(relative, floats ? 1e-5 : 4e-3)
          << size.m << " x " << size.n << " x " << size.k << ", epilogue " << static_cast<int>(epilogue);
      EXPECT_FALSE(std::isnan(relative));
    }
  }
}

template <class T>
DeviceMemory<T> send(const std::vector<T>& values) {
  DeviceMemory<T> device(static_cast<int64_t>(values.size()));
  check(cudaMemcpy(device.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "send");
  return device;
}

/// Against the product and place_heads one after the other.
TEST(HopperGemm, PlacesHeadsAsTwoStepsDo) {
  NEED_OUR_PRODUCTS();
  std::mt19937 random(6);
  std::normal_distribution<float> normal(0, 1);
  auto floats = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(random);
    return send(values);
  };
  auto halves = [&](int64_t count, float spread) {
    std::vector<bf16> values(static_cast<size_t>(count));
    for (bf16& value : values) value = __float2bfloat16(spread * normal(random));
    return send(values);
  };
  for (int round = 0; round < 8; ++round) {
    HeadLayout layout{};
    layout.heads = round % 4 == 3 ? 3 : 4;  // an odd number of heads leaves part of a tile empty
    layout.kv_heads = round % 2 == 0 ? 2 : 1;
    const int32_t dim = round < 4 ? 128 : 64;
    layout.head_dim = layout.padded_dim = layout.rotary_dim = dim;
    layout.norm = round % 4 < 2 ? 1 : 0;
    layout.eps = 1e-6f;
    layout.query_scale = 0.1f;
    layout.slots = 1000;
    const int32_t rows = 333, hidden = 192;
    const int64_t n = int64_t{layout.heads + 2 * layout.kv_heads} * dim;
    const auto in = halves(int64_t{rows} * hidden, 1), weight = halves(n * hidden, 0.1f);
    const auto bias = floats(n), q_norm = floats(dim), k_norm = floats(dim),
               rope = floats(int64_t{rows} * dim);
    std::vector<int32_t> slots(static_cast<size_t>(layout.slots));
    for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int32_t>(i);
    std::shuffle(slots.begin(), slots.end(), random);
    const auto kv_slots = send(slots);
    const int64_t q_count = int64_t{rows} * layout.heads * dim,
                  kv_count = layout.kv_heads * layout.slots * dim;
    std::vector<std::vector<f16>> results;
    for (const bool fused : {false, true}) {
      const DeviceMemory<f16> q(q_count), keys(kv_count), values(kv_count);
      const DeviceMemory<bf16> qkv(rows * n);
      for (const auto* memory : {&q, &keys, &values})
        check(cudaMemset(memory->data(), 0, static_cast<size_t>(memory->size()) * 2), "clear");
      const float* maybe_bias = round % 2 == 0 ? bias.data() : nullptr;
      const HeadTargets targets{maybe_bias, q_norm.data(), k_norm.data(), rope.data(),  kv_slots.data(),
                                layout,     q.data(),      keys.data(),   values.data()};
      if (fused) {
        ASSERT_TRUE(multiply_heads_hopper(in.data(), weight.data(), rows, hidden, targets, nullptr));
      } else {
        ASSERT_TRUE(
            multiply_hopper(Epilogue::store, in.data(), weight.data(), rows, n, hidden, qkv.data(), nullptr));
        place_heads(qkv.data(), rows, targets, nullptr);
      }
      check(cudaDeviceSynchronize(), "heads");
      for (const auto* memory : {&q, &keys, &values}) {
        std::vector<f16> host(static_cast<size_t>(memory->size()));
        check(cudaMemcpy(host.data(), memory->data(), host.size() * 2, cudaMemcpyDeviceToHost), "result");
        results.push_back(std::move(host));
      }
    }
    for (size_t part = 0; part < 3; ++part) {
      double error = 0, square = 0;
      for (size_t i = 0; i < results[part].size(); ++i) {
        const double right = static_cast<double>(__half2float(results[part][i]));
        const double got = static_cast<double>(__half2float(results[part + 3][i]));
        error += (got - right) * (got - right);
        square += right * right;
      }
      EXPECT_GT(square, 0);
      EXPECT_LT(std::sqrt(error / square), 6e-3) << "round " << round << ", part " << part;
    }
  }
}

}  // namespace
}  // namespace sheaf

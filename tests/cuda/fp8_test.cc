// FP8 products with their epilogues against fp64 sums of the same e4m3 values, and what rounds rows to e4m3.
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>
#include <span>

#include "core/model/e4m3.h"
#include "cpu/cpu_backend.h"
#include "cuda/base/device_memory.h"
#include "cuda/base/devices.h"
#include "cuda/gemm/gemm.h"
#include "cuda/ops/ops.h"
#include "tests/cuda/activated.h"
#include "tests/cuda/fp8_rows.h"
#include "tests/cuda/need_gpu.h"
#include "tests/cuda/side_by_side.h"
#include "tests/engine/decode.h"
#include "tests/random_model.h"
#include "tests/random_parts.h"

namespace sheaf {
namespace {

using namespace cuda;

/// FP8 products must run on every GPU of capability 9.0.
#define NEED_FP8() \
  NEED_HOPPER();   \
  ASSERT_TRUE(hopper_fp8_products())

using test::fetch;
using test::relative_error;
using test::Rows;
using test::send;
using test::uneven;
using test::Weight;

TEST(Fp8, RowsRoundToTheNearest) {
  NEED_FP8();
  std::mt19937 random(3);
  for (const int64_t cols : {16, 128, 576, 1040, 6144}) {
    constexpr int64_t rows = 37;
    std::vector<float> numbers = uneven(rows, cols, random);
    std::fill_n(numbers.begin(), cols, 0.0f);  // a row of zeros
    const Rows out(rows, cols);
    round_rows(send(numbers).data(), static_cast<int32_t>(rows), static_cast<int32_t>(cols), out.view(),
               nullptr);
    const auto got = out.numbers();
    const auto bits = fetch(out.values);
    const auto scales = fetch(out.scales);
    for (int64_t row = 0; row < rows; ++row) {
      const float* in = numbers.data() + row * cols;
      float most = 1e-20f;
      for (int64_t col = 0; col < cols; ++col) most = std::max(most, std::fabs(in[col]));
      ASSERT_EQ(scales[static_cast<size_t>(row)], most / kLargestE4m3);
      for (int64_t col = 0; col < cols; ++col)
        ASSERT_EQ(bits[static_cast<size_t>(row * cols + col)].__x, to_e4m3(in[col] * (kLargestE4m3 / most)))
            << row << ", " << col;
    }
    std::vector<double> right(numbers.begin(), numbers.end());
    EXPECT_LT(relative_error(got, right), 0.03);
  }
}

TEST(Fp8, NormsRoundWhatTheyWouldWrite) {
  NEED_FP8();
  std::mt19937 random(4);
  for (const int64_t cols : {576, 2048, 4096, 8192}) {
    constexpr int64_t rows = 19;
    const auto x = send(uneven(rows, cols, random)), weight = send(uneven(1, cols, random));
    const DeviceMemory<bf16> wide(rows * cols);
    const Rows narrow(rows, cols);
    const auto count = static_cast<int32_t>(rows), hidden = static_cast<int32_t>(cols);
    rms_norm(x.data(), nullptr, weight.data(), count, hidden, 1e-6f, wide.data(), nullptr);
    rms_norm(x.data(), nullptr, weight.data(), count, hidden, 1e-6f, narrow.view(), nullptr);
    std::vector<double> right;
    for (const bf16 value : fetch(wide)) right.push_back(static_cast<double>(__bfloat162float(value)));
    EXPECT_LT(relative_error(narrow.numbers(), right), 0.03) << cols;
  }
}

/// A row over its root mean square, times a weight.
void norm_row(std::span<double> row, std::span<const float> weight) {
  double square = 0;
  for (const double value : row) square += value * value;
  const double scale = 1 / std::sqrt(square / static_cast<double>(row.size()) + 1e-6);
  for (size_t i = 0; i < row.size(); ++i) row[i] *= scale * static_cast<double>(weight[i]);
}

TEST(Norms, AddWhatABlockGivesAndReadItForTheNext) {
  NEED_HOPPER();
  std::mt19937 random(5);
  for (const int64_t cols : {576, 2048, 5376}) {
    constexpr int64_t rows = 19;
    const auto count = static_cast<int32_t>(rows), hidden = static_cast<int32_t>(cols);
    const auto of_sum = send(uneven(1, cols, random)), of_next = send(uneven(1, cols, random));
    const std::vector<float> start = uneven(rows, cols, random), added = uneven(rows, cols, random);
    const auto y = send(added);
    for (const ResidualNorms& norms : {ResidualNorms{of_sum.data(), nullptr, 1, 1e-6f},
                                       ResidualNorms{of_sum.data(), of_next.data(), 1, 1e-6f},
                                       ResidualNorms{nullptr, of_next.data(), 0.22f, 1e-6f}}) {
      std::vector<double> sums, next;
      for (int64_t row = 0; row < rows; ++row) {
        const auto first = row * cols;
        std::vector<double> part(added.begin() + first, added.begin() + first + cols);
        if (norms.of_sum) norm_row(part, fetch(of_sum));
        for (int64_t col = 0; col < cols; ++col)
          part[static_cast<size_t>(col)] = part[static_cast<size_t>(col)] * static_cast<double>(norms.scale) +
                                           static_cast<double>(start[static_cast<size_t>(first + col)]);
        sums.insert(sums.end(), part.begin(), part.end());
        if (norms.of_next) norm_row(part, fetch(of_next));
        next.insert(next.end(), part.begin(), part.end());
      }
      const auto x = send(start), again = send(start);
      const DeviceMemory<bf16> wide(rows * cols);
      const Rows narrow(rows, cols);
      add_normed(y.data(), norms, count, hidden, x.data(), wide.data(), nullptr);
      add_normed(y.data(), norms, count, hidden, again.data(), narrow.view(), nullptr);
      EXPECT_EQ(fetch(x), fetch(again));
      std::vector<double> got_sums, got_next;
      for (const float value : fetch(x)) got_sums.push_back(static_cast<double>(value));
      for (const bf16 value : fetch(wide)) got_next.push_back(static_cast<double>(__bfloat162float(value)));
      EXPECT_LT(relative_error(got_sums, sums), 1e-5) << cols;
      EXPECT_LT(relative_error(got_next, next), 4e-3) << cols;
      EXPECT_LT(relative_error(narrow.numbers(), next), 0.03) << cols;
    }
  }
}

struct Size {
  int64_t m, n, k;
};
class Fp8Products : public testing::TestWithParam<Size> {};

/// Those of Hopper, and those of Ada, which run on Hopper too.
struct Kernels {
  decltype(&multiply_ada) multiply;
  decltype(&multiply_gated_ada) multiply_gated;
};
constexpr Kernels kHopper{multiply_hopper, multiply_gated_hopper}, kAda{multiply_ada, multiply_gated_ada};

void expect_plain_sums(const Size& size, const Kernels& kernels) {
  const auto [m, n, k] = size;
  std::mt19937 random(5);
  const Rows in(m, k);
  round_rows(send(uneven(m, k, random)).data(), static_cast<int32_t>(m), static_cast<int32_t>(k), in.view(),
             nullptr);
  const Weight weight(uneven(n, k, random), n, k);
  const auto a = in.numbers(), w = weight.numbers();
  // A sample of rows, all columns.
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < m; row += std::max<int64_t>(1, m / 29)) rows.push_back(row);
  rows.push_back(m - 1);
  std::vector<double> sums;
  for (const int64_t row : rows)
    for (int64_t col = 0; col < n; ++col) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i)
        sum += a[static_cast<size_t>(row * k + i)] * w[static_cast<size_t>(col * k + i)];
      sums.push_back(sum);
    }
  const auto sampled = [&](const auto& all, int64_t cols, auto&& number) {
    std::vector<double> sample;
    for (const int64_t row : rows)
      for (int64_t col = 0; col < cols; ++col)
        sample.push_back(number(all[static_cast<size_t>(row * cols + col)]));
    return sample;
  };
  const auto poisoned = [](int64_t count) {
    DeviceMemory<float> out(count);
    check(cudaMemset(out.data(), 0xff, static_cast<size_t>(count) * 4), "poison");
    return out;
  };
  const auto plain = [](float value) { return static_cast<double>(value); };

  const auto floats = poisoned(m * n);
  ASSERT_TRUE(
      kernels.multiply(Epilogue::store_floats, in.view(), weight.view(), m, n, k, floats.data(), nullptr));
  EXPECT_LT(relative_error(sampled(fetch(floats), n, plain), sums), 5e-3);

  const auto added = send(std::vector<float>(static_cast<size_t>(m * n), 3.0f));
  ASSERT_TRUE(kernels.multiply(Epilogue::add, in.view(), weight.view(), m, n, k, added.data(), nullptr));
  EXPECT_LT(
      relative_error(sampled(fetch(added), n, [](float v) { return static_cast<double>(v) - 3; }), sums),
      5e-3);

  const DeviceMemory<bf16> stored(m * n);
  ASSERT_TRUE(kernels.multiply(Epilogue::store, in.view(), weight.view(), m, n, k, stored.data(), nullptr));
  EXPECT_LT(
      relative_error(
          sampled(fetch(stored), n, [](bf16 v) { return static_cast<double>(__bfloat162float(v)); }), sums),
      4e-3);

  if (n % 32 != 0) return;
  // The same weight's rows as gate and up.
  const int64_t ffn = n / 2;
  const DeviceMemory<e4m3> both(n * k);
  const DeviceMemory<float> both_scales(n);
  interleave_rows(weight.values.data(), ffn, k, both.data(), nullptr);
  interleave_rows(weight.scales.data(), ffn, 1, both_scales.data(), nullptr);
  for (const Activation activation : {Activation::silu, Activation::gelu_tanh}) {
    const Rows out(m, ffn);
    ASSERT_TRUE(kernels.multiply_gated(activation, in.view(), {both.data(), both_scales.data()}, m, ffn, k,
                                       out.view(), nullptr));
    align_rows(out.view(), static_cast<int32_t>(m), static_cast<int32_t>(ffn), nullptr);
    std::vector<double> gated;
    for (size_t i = 0; i < rows.size(); ++i)
      for (int64_t col = 0; col < ffn; ++col) {
        const double gate = sums[i * static_cast<size_t>(n) + static_cast<size_t>(col)],
                     up = sums[i * static_cast<size_t>(n) + static_cast<size_t>(col + ffn)];
        gated.push_back(test::activated(activation, gate) * up);
      }
    // Three bits: half a step of 1/8, evenly spread, of numbers just above a power of two are 0.036.
    EXPECT_LT(relative_error(sampled(out.numbers(), ffn, [](double v) { return v; }), gated), 0.037);
  }
}

TEST_P(Fp8Products, EqualPlainSums) {
  NEED_FP8();
  expect_plain_sums(GetParam(), kHopper);
}

TEST_P(Fp8Products, EqualPlainSumsByTheKernelsForAda) {
  NEED_GPU();
  SKIP_UNLESS(test::gpu_capability() >= 89, test::Lacking::hopper, "a GPU before Ada");
  ASSERT_TRUE(ada_fp8_products());
  expect_plain_sums(GetParam(), kAda);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Fp8Products,
                         testing::Values(Size{1, 32, 16}, Size{128, 256, 128}, Size{129, 272, 144},
                                         Size{300, 512, 576}, Size{513, 784, 1008}, Size{2500, 1056, 2048}));

TEST(Fp8, BlocksComeToTheScaleOfTheirRow) {
  NEED_FP8();
  constexpr int64_t rows = 70, cols = 1040, blocks = 9;  // the last block has 16 columns
  std::mt19937 random(8);
  std::vector<e4m3> values(rows * cols);
  std::vector<float> scales(rows * blocks);
  std::vector<double> right;
  for (float& scale : scales) scale = std::exp2(4.0f * static_cast<float>(random() % 3) - 4);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i].__x = to_e4m3(static_cast<float>(random() % 800) - 400);
    right.push_back(static_cast<double>(from_e4m3(values[i].__x)) *
                    static_cast<double>(scales[i / cols * blocks + i % cols / kFp8Block]));
  }
  Rows out(rows, cols);
  out.values = send(values);
  out.blocks = send(scales);
  align_rows(out.view(), rows, cols, nullptr);
  EXPECT_EQ(fetch(out.blocks), scales);
  const auto got = out.numbers();
  const auto factors = fetch(out.scales);
  for (int64_t row = 0; row < rows; ++row) {
    const auto* first = scales.data() + row * blocks;
    const float most = *std::max_element(first, first + blocks);
    ASSERT_EQ(factors[static_cast<size_t>(row)], most);
    for (int64_t col = 0; col < cols; ++col) {
      const auto at = static_cast<size_t>(row * cols + col);
      // Exact, but where the row's scale leaves fewer than three bits.
      const double step = static_cast<double>(most) * 0x1p-9;
      if (std::fabs(right[at]) >= 8 * step)
        ASSERT_EQ(got[at], right[at]) << row << ", " << col;
      else
        ASSERT_LE(std::fabs(got[at] - right[at]), step / 2) << row << ", " << col;
    }
  }
}

/// Against the product and place_heads one after the other.
TEST(Fp8, PlacesHeadsAsTwoStepsDo) {
  NEED_FP8();
  std::mt19937 random(6);
  for (const int32_t dim : {128, 64}) {
    HeadLayout layout{};
    layout.heads = 3;
    layout.kv_heads = 1;
    layout.head_dim = layout.padded_dim = layout.rotary_dim = dim;
    layout.norm = 1;
    layout.eps = 1e-6f;
    layout.query_scale = 0.1f;
    layout.slots = 400;
    constexpr int32_t rows = 333, hidden = 192;
    const int64_t n = int64_t{layout.heads + 2 * layout.kv_heads} * dim;
    const Rows in(rows, hidden);
    round_rows(send(uneven(rows, hidden, random)).data(), rows, hidden, in.view(), nullptr);
    const Weight weight(uneven(n, hidden, random), n, hidden);
    const auto bias = send(uneven(1, n, random)), norm = send(uneven(1, dim, random)),
               rope = send(uneven(rows, dim, random));
    std::vector<int32_t> slots(rows);
    for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int32_t>(i + 20);
    const auto kv_slots = send(slots);
    std::vector<std::vector<f16>> results;
    for (const bool fused : {false, true}) {
      const DeviceMemory<f16> q(int64_t{rows} * layout.heads * dim), keys(layout.slots * dim),
          values(layout.slots * dim);
      for (const auto* memory : {&q, &keys, &values})
        check(cudaMemset(memory->data(), 0, static_cast<size_t>(memory->size()) * 2), "clear");
      const HeadTargets targets{bias.data(), norm.data(), norm.data(), rope.data(),  kv_slots.data(),
                                layout,      q.data(),    keys.data(), values.data()};
      const DeviceMemory<bf16> qkv(rows * n);
      if (fused) {
        ASSERT_TRUE(multiply_heads_hopper(in.view(), weight.view(), rows, hidden, targets, nullptr));
      } else {
        ASSERT_TRUE(
            multiply_hopper(Epilogue::store, in.view(), weight.view(), rows, n, hidden, qkv.data(), nullptr));
        place_heads(qkv.data(), rows, targets, nullptr);
      }
      for (const auto* memory : {&q, &keys, &values}) results.push_back(fetch(*memory));
    }
    for (size_t part = 0; part < 3; ++part) {
      std::vector<double> right, got;
      for (const f16 value : results[part]) right.push_back(static_cast<double>(__half2float(value)));
      for (const f16 value : results[part + 3]) got.push_back(static_cast<double>(__half2float(value)));
      EXPECT_LT(relative_error(got, right), 6e-3) << dim << ", part " << part;
    }
  }
}

/// Every step of a decode loop against the CPU in fp32: e4m3 has three bits, and a tiny model little to
/// average over.
TEST(Fp8, ModelsAgreeWithTheCpu) {
  NEED_FP8();
  const std::pair<const char*, test::RandomModelShape> shapes[] = {
      {"heads of 64", {.hidden = 576, .ffn = 1536, .heads = 9, .kv_heads = 3, .head_dim = 64}},
      {"heads of 128, norm",
       {.hidden = 512, .ffn = 1040, .heads = 8, .kv_heads = 2, .head_dim = 128, .qk_norm = QkNorm::per_head}},
      {"norms after",
       {.hidden = 256,
        .ffn = 512,
        .heads = 8,
        .kv_heads = 8,
        .head_dim = 32,
        .qk_norm = QkNorm::whole,
        .post_norm = true}},
  };
  for (const auto& [name, shape] : shapes) {
    const Model model = test::make_random_model(shape, 31);
    const auto records = test::make_random_records({.records = 6,
                                                    .questions = 5,
                                                    .vocab = model.config.vocab,
                                                    .max_tokens = 6,
                                                    .own_questions = true,
                                                    .longest = 200},
                                                   31);
    std::vector<Stack> stacks;
    build_tree(records, stacks);
    const auto cpu = make_quick_backend(model, 2);
    const auto wide = make_cuda_backend(model, {}), narrow = make_cuda_backend(model, {.fp8 = true});
    double errors[2] = {};
    for (const bool fp8 : {false, true}) {
      test::SideBySide both(*cpu, fp8 ? *narrow : *wide);
      test::decode(both, stacks, {.tokens_per_step = 500, .pages = 2000});
      both.errors.print(fmt::format("{}, {}", name, fp8 ? "fp8" : "bf16"));
      both.errors.expect_below(fp8 ? 0.15 : 0.03, fp8 ? 0.4 : 0.12, name);
      errors[fp8 ? 1 : 0] = both.errors.mean();
    }
    EXPECT_GT(errors[1], 2 * errors[0]) << name << ": this cannot be FP8";
  }
}

/// Biases of keys like those of Qwen 2.5: most are small, one is far larger than any key.
void enlarge_key_biases(Model& model) {
  for (LayerWeights& layer : model.layers) {
    auto values = std::make_shared<std::vector<float>>(layer.k_bias.read_all());
    for (size_t head = 0; head < values->size(); head += static_cast<size_t>(model.config.head_dim))
      (*values)[head + 5] = 60;
    layer.k_bias.dtype = DType::f32;
    layer.k_bias.data = reinterpret_cast<const std::byte*>(values->data());
    model.files.push_back(values);
  }
}

TEST(Fp8, KeysAndValuesAgreeWithTheCpu) {
  NEED_GPU();
  const std::pair<const char*, test::RandomModelShape> shapes[] = {
      {"heads of 64", {.hidden = 192, .heads = 6, .kv_heads = 2, .head_dim = 64}},
      {"heads of 128, norm",
       {.hidden = 256, .heads = 8, .kv_heads = 2, .head_dim = 128, .qk_norm = QkNorm::per_head}},
      {"three heads of 128", {.hidden = 384, .heads = 6, .kv_heads = 3, .head_dim = 128}},
      {"heads of 96", {.hidden = 192, .heads = 4, .kv_heads = 2, .head_dim = 96}},
      {"partial rotation", {.hidden = 192, .heads = 6, .kv_heads = 2, .head_dim = 64, .rotary_dim = 24}},
      {"norms after",
       {.hidden = 192,
        .heads = 6,
        .kv_heads = 2,
        .head_dim = 64,
        .qk_norm = QkNorm::whole,
        .post_norm = true}},
      {"heads of 200", {.heads = 2, .kv_heads = 1, .head_dim = 200}},
      {"odd heads", {.head_dim = 40, .biases = true}},
      {"large biases, partial rotation", {.head_dim = 64, .rotary_dim = 24, .biases = true}},
      {"large biases", {.hidden = 192, .heads = 6, .kv_heads = 2, .head_dim = 64, .biases = true}},
  };
  for (const auto& [name, shape] : shapes) {
    Model model = test::make_random_model(shape, 32);
    const bool large = std::string_view(name).starts_with("large");
    if (large) enlarge_key_biases(model);
    const auto records = test::make_random_records({.records = 30,
                                                    .questions = 4,
                                                    .vocab = model.config.vocab,
                                                    .max_tokens = 6,
                                                    .own_questions = true,
                                                    .longest = 200},
                                                   32);
    std::vector<Stack> stacks;
    build_tree(records, stacks);
    double errors[2] = {};
    for (const bool narrow : {false, true}) {
      const auto cpu = make_quick_backend(model, 2);
      const auto gpu = make_cuda_backend(model, {.fp8_keys = narrow});
      test::SideBySide both(*cpu, *gpu);
      test::decode(both, stacks, {.tokens_per_step = 300, .pages = 4000});
      both.errors.print(fmt::format("{}, keys in {}", name, narrow ? "fp8" : "fp16"));
      both.errors.expect_below(narrow ? 0.12 : large ? 0.08 : 0.03, narrow || large ? 0.5 : 0.2, name);
      errors[narrow ? 1 : 0] = both.errors.mean();
    }
    EXPECT_TRUE(large || errors[1] > 1.2 * errors[0]) << name << ": these cannot be FP8";
    if (shape.biases || shape.hidden % 16 != 0) continue;
    const auto cpu = make_quick_backend(model, 2);
    const auto gpu = make_cuda_backend(model, {.fp8 = true, .fp8_keys = true});
    test::SideBySide both(*cpu, *gpu);
    test::decode(both, stacks, {.tokens_per_step = 300, .pages = 4000});
    both.errors.print(fmt::format("{}, all in fp8", name));
    both.errors.expect_below(0.2, 0.6, name);
  }
}

}  // namespace
}  // namespace sheaf

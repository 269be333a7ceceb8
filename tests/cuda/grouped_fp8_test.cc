// The products of experts in FP8 against fp64 sums of the same e4m3 values, and what stands around them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

#include "cuda/base/devices.h"
#include "cuda/gemm/gemm.h"
#include "cuda/gemm/grouped_hopper.h"
#include "cuda/ops/experts.h"
#include "tests/cuda/activated.h"
#include "tests/cuda/copies.h"
#include "tests/cuda/fp8_rows.h"
#include "tests/cuda/need_gpu.h"

namespace sheaf {
namespace {

using namespace cuda;
using test::fetch;
using test::poisoned;
using test::relative_error;
using test::Rows;
using test::send;
using test::uneven;
using test::Weight;

#define NEED_ADA() \
  NEED_GPU();      \
  SKIP_UNLESS(test::gpu_capability() >= 89, test::Lacking::hopper, "a GPU before Ada")

enum class By { ours, hopper };

std::vector<int32_t> offsets_of(const std::vector<int32_t>& counts) {
  std::vector<int32_t> offsets{0};
  for (const int32_t count : counts) offsets.push_back(offsets.back() + count);
  return offsets;
}

/// Rows, the weights of experts, and which rows are whose.
struct Case {
  Case(const std::vector<int32_t>& the_counts, int64_t the_n, int64_t the_k, bool gathered,
       std::mt19937& random)
      : counts(the_counts),
        offsets(offsets_of(counts)),
        n(the_n),
        k(the_k),
        in_rows(gathered ? offsets.back() / 2 + 1 : offsets.back()),
        in(in_rows, k),
        weight(uneven(static_cast<int64_t>(counts.size()) * n, k, random),
               static_cast<int64_t>(counts.size()) * n, k),
        d_offsets(send(offsets)) {
    round_rows(send(uneven(in_rows, k, random)).data(), static_cast<int32_t>(in_rows),
               static_cast<int32_t>(k), in.view(), nullptr);
    check(cudaDeviceSynchronize(), "rows");
    for (int32_t row = 0; gathered && row < offsets.back(); ++row)
      sources.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(in_rows)));
    d_sources = send(sources);
  }

  GroupedFp8Rows rows() const {
    return {in.view(), sources.empty() ? nullptr : d_sources.data(), d_offsets.data(),
            static_cast<int32_t>(counts.size())};
  }
  int64_t gathered_rows() const { return offsets.back(); }

  /// [gathered rows, n]
  std::vector<double> sums() const {
    const std::vector<double> a = in.numbers(), w = weight.numbers();
    std::vector<double> all;
    for (size_t expert = 0; expert < counts.size(); ++expert)
      for (int32_t row = offsets[expert]; row < offsets[expert + 1]; ++row)
        for (int64_t col = 0; col < n; ++col) {
          const int64_t from = sources.empty() ? row : sources[static_cast<size_t>(row)];
          double sum = 0;
          for (int64_t i = 0; i < k; ++i)
            sum += a[static_cast<size_t>(from * k + i)] *
                   w[static_cast<size_t>((static_cast<int64_t>(expert) * n + col) * k + i)];
          all.push_back(sum);
        }
    return all;
  }

  std::vector<int32_t> counts, offsets, sources;
  int64_t n, k, in_rows;
  Rows in;
  Weight weight;
  DeviceMemory<int32_t> d_offsets, d_sources;
};

/// [gathered rows and three more, n]
std::vector<bf16> multiply(const Case& given, By by) {
  const auto out = poisoned<bf16>((given.gathered_rows() + 3) * given.n);
  if (by == By::hopper)
    multiply_grouped_hopper(given.rows(), given.gathered_rows(), given.weight.view(), given.n, given.k,
                            out.data(), nullptr);
  else
    multiply_grouped(given.rows(), given.weight.view(), given.n, given.k, out.data(), nullptr);
  return fetch(out);
}

const std::vector<std::vector<int32_t>> kSpreads{
    {0, 1, 5, 128, 129, 0, 30, 64, 16, 17}, {1}, {300}, {0, 0, 0, 257}, {2, 0, 0, 0}};
constexpr std::pair<int64_t, int64_t> kSizes[] = {{16, 16}, {48, 32}, {272, 80}, {528, 208}};

void compare(const Case& given, By by) {
  SCOPED_TRACE(testing::Message() << given.gathered_rows() << " rows of " << given.counts.size()
                                  << " experts, " << given.n << " x " << given.k
                                  << (given.sources.empty() ? "" : ", gathered"));
  const std::vector<bf16> got = multiply(given, by);
  const std::vector<double> right = given.sums();
  std::vector<double> numbers;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::isnan(__bfloat162float(got[i])), i >= right.size()) << "value " << i;
    if (i < right.size()) numbers.push_back(static_cast<double>(__bfloat162float(got[i])));
  }
  EXPECT_LT(relative_error(numbers, right), 5e-3);
}

TEST(GroupedFp8, EqualsPlainSums) {
  NEED_ADA();
  std::mt19937 random(5);
  for (const std::vector<int32_t>& counts : kSpreads)
    for (const auto& [n, k] : kSizes)
      for (const bool gathered : {false, true}) compare(Case(counts, n, k, gathered, random), By::ours);
}

TEST(GroupedFp8, HopperEqualsPlainSums) {
  NEED_HOPPER();
  std::mt19937 random(13);
  for (const std::vector<int32_t>& counts : kSpreads)
    for (const auto& [n, k] : kSizes) compare(Case(counts, n, k, false, random), By::hopper);
}

/// Biases of gate and up, one above the other in each expert, so large that clamps are reached.
std::vector<float> make_bias(Activation activation, int64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> bias(activation == Activation::clamped ? static_cast<size_t>(count) : 0);
  for (float& value : bias) value = normal(random);
  return bias;
}

/// Sums with the bias of each row's expert.
void add_bias(const Case& given, const std::vector<float>& bias, std::vector<double>& sums) {
  const auto n = static_cast<size_t>(given.n);
  for (size_t expert = 0; !bias.empty() && expert < given.counts.size(); ++expert)
    for (auto row = static_cast<size_t>(given.offsets[expert]);
         row < static_cast<size_t>(given.offsets[expert + 1]); ++row)
      for (size_t col = 0; col < n; ++col) sums[row * n + col] += static_cast<double>(bias[expert * n + col]);
}

/// The gates and ups of `right` as they stand one above the other in each expert's weight.
std::vector<double> gated_of(const std::vector<double>& right, int64_t n, Activation activation) {
  std::vector<double> gated;
  for (size_t row = 0; row < right.size() / static_cast<size_t>(n); ++row)
    for (int64_t col = 0; col < n / 2; ++col) {
      const size_t gate = row * static_cast<size_t>(n) + static_cast<size_t>(col);
      gated.push_back(test::gated(activation, right[gate], right[gate + static_cast<size_t>(n / 2)]));
    }
  return gated;
}

/// A case's weight with gate and up of each expert side by side.
struct Interleaved {
  explicit Interleaved(const Case& given, const std::vector<float>& plain_bias)
      : values(given.weight.values.size()),
        scales(given.weight.scales.size()),
        bias(static_cast<int64_t>(plain_bias.size())) {
    const int64_t ffn = given.n / 2;
    const auto plain = send(plain_bias);
    for (int64_t first = 0; first < bias.size(); first += given.n)
      interleave_rows(plain.data() + first, ffn, 1, bias.data() + first, nullptr);
    check(cudaDeviceSynchronize(), "biases");
    for (int64_t first = 0; first < scales.size(); first += given.n) {
      interleave_rows(given.weight.values.data() + first * given.k, ffn, given.k,
                      values.data() + first * given.k, nullptr);
      interleave_rows(given.weight.scales.data() + first, ffn, 1, scales.data() + first, nullptr);
    }
  }
  Fp8Weight view() const { return {values.data(), scales.data()}; }
  DeviceMemory<e4m3> values;
  DeviceMemory<float> scales, bias;
};

/// Three bits: half a step of 1/8, evenly spread, of numbers just above a power of two are 0.036. Where a few
/// large numbers make up most of the sum, no more than that half step of each is sure.
double rounded(int32_t rows) {
  return rows > 4 ? 0.037 : 1.0 / 16;
}

TEST(GroupedFp8, GatesRoundWhatTheyMake) {
  NEED_ADA();
  std::mt19937 random(7);
  for (const std::vector<int32_t>& counts : kSpreads)
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{32, 16}, {544, 80}})
      for (const bool gathered : {false, true})
        for (const Activation activation : {Activation::silu, Activation::gelu_tanh, Activation::clamped}) {
          const Case given(counts, n, k, gathered, random);
          const std::vector<float> bias =
              make_bias(activation, static_cast<int64_t>(counts.size()) * n, random);
          const Interleaved weight(given, bias);
          const Gates gates(activation, weight.bias.data());
          std::vector<double> sums = given.sums();
          add_bias(given, bias, sums);
          const std::vector<double> right = gated_of(sums, n, activation);
          const auto rows = static_cast<int32_t>(given.gathered_rows());
          for (const By by : {By::ours, By::hopper}) {
            if (by == By::hopper && (gathered || !grouped_hopper_products(n, k))) continue;
            const Rows out(rows, n / 2);
            if (by == By::hopper)
              multiply_grouped_gated_hopper(gates, given.rows(), rows, weight.view(), n / 2, k, out.view(),
                                            nullptr);
            else
              multiply_grouped_gated(gates, given.rows(), weight.view(), n / 2, k, out.view(), nullptr);
            align_rows(out.view(), rows, static_cast<int32_t>(n / 2), nullptr);
            EXPECT_LT(relative_error(out.numbers(), right), rounded(rows))
                << n << " x " << k << ", " << rows << " rows by " << static_cast<int>(by);
          }
        }
}

TEST(GroupedFp8, GatesBesideAProductRoundTheSameNumbers) {
  NEED_GPU();
  std::mt19937 random(8);
  for (const int32_t ffn : {16, 48, 768, 1040, 14336}) {
    constexpr int32_t rows = 9;
    std::vector<bf16> both;
    for (const float value : uneven(rows, 2 * ffn, random)) both.push_back(__float2bfloat16(value));
    std::fill_n(both.begin(), 2 * ffn, __float2bfloat16(0.0f));
    for (const Activation activation : {Activation::silu, Activation::gelu_tanh, Activation::clamped}) {
      const Rows out(rows, ffn);
      gates_to_fp8(activation, send(both).data(), rows, ffn, out.view(), nullptr);
      std::vector<double> right;
      for (int32_t row = 0; row < rows; ++row)
        for (int32_t col = 0; col < ffn; ++col) {
          const auto gate =
              static_cast<size_t>(int64_t{row} * 2 * ffn + interleaved(RowOrder::by_sixteens, col));
          right.push_back(test::gated(activation, static_cast<double>(__bfloat162float(both[gate])),
                                      static_cast<double>(__bfloat162float(both[gate + 8]))));
        }
      EXPECT_LT(relative_error(out.numbers(), right), rounded(rows)) << ffn;
      const std::vector<float> scales = fetch(out.scales);
      for (const float scale : scales) EXPECT_TRUE(scale > 0 && std::isfinite(scale));
    }
  }
}

TEST(GroupedFp8, RowsAreCopiedWithTheirScales) {
  NEED_GPU();
  std::mt19937 random(9);
  for (const int32_t cols : {16, 80, 2064}) {
    const Rows in(50, cols), out(333, cols);
    round_rows(send(uneven(50, cols, random)).data(), 50, cols, in.view(), nullptr);
    std::vector<int32_t> sources(333);
    for (int32_t& source : sources) source = static_cast<int32_t>(random() % 50);
    copy_rows(in.view(), send(sources).data(), 333, cols, out.view(), nullptr);
    const std::vector<double> from = in.numbers(), got = out.numbers();
    for (size_t i = 0; i < got.size(); ++i) {
      const auto col = i % static_cast<size_t>(cols);
      const auto source = static_cast<size_t>(sources[i / static_cast<size_t>(cols)]);
      ASSERT_EQ(got[i], from[source * static_cast<size_t>(cols) + col]) << cols << ", value " << i;
    }
  }
}

/// Every `step`th row of a case by itself.
void compare_alone(By by, uint32_t step, std::mt19937& random) {
  const Case all({150, 290, 0, 60}, 528, 208, false, random);
  const std::vector<e4m3> values = fetch(all.in.values);
  const std::vector<float> scales = fetch(all.in.scales);
  std::vector<size_t> kept;
  std::vector<int32_t> fewer(all.counts.size(), 0);
  for (size_t row = 0, expert = 0; row < scales.size(); ++row) {
    while (row >= static_cast<size_t>(all.offsets[expert + 1])) ++expert;
    if (row % step != 1) continue;
    kept.push_back(row);
    ++fewer[expert];
  }
  Case some(fewer, all.n, all.k, false, random);
  std::vector<e4m3> some_values;
  std::vector<float> some_scales;
  const auto k = static_cast<size_t>(all.k), n = static_cast<size_t>(all.n);
  for (const size_t row : kept) {
    some_values.insert(some_values.end(), &values[row * k], &values[row * k] + k);
    some_scales.push_back(scales[row]);
  }
  some.in.values = send(some_values);
  some.in.scales = send(some_scales);
  some.weight.values = send(fetch(all.weight.values));
  some.weight.scales = send(fetch(all.weight.scales));
  const std::vector<bf16> whole = multiply(all, by), part = multiply(some, by);
  for (size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(std::memcmp(&part[i * n], &whole[kept[i] * n], 2 * n), 0) << "row " << kept[i];
}

TEST(GroupedFp8, RowsDoNotDependOnTheirNeighbours) {
  NEED_ADA();
  std::mt19937 random(10);
  for (const uint32_t step : {2, 7, 61}) compare_alone(By::ours, step, random);
}

TEST(GroupedFp8, HopperRowsDoNotDependOnTheirNeighbours) {
  NEED_HOPPER();
  std::mt19937 random(14);
  for (const uint32_t step : {2, 7, 61}) compare_alone(By::hopper, step, random);
}

TEST(GroupedFp8, ManyExpertsOrOne) {
  NEED_ADA();
  std::mt19937 random(12);
  std::vector<std::vector<int32_t>> spreads;
  spreads.emplace_back(kMostGroups, 1);
  spreads.emplace_back(kMostGroups, 0).back() = 700;
  spreads.emplace_back(kMostGroups - 1, 0)[300] = 500;
  for (const std::vector<int32_t>& counts : spreads) {
    const Case given(counts, 48, 64, false, random);
    compare(given, By::ours);
    if (grouped_hopper_products(given.n, given.k)) compare(given, By::hopper);
  }
}

}  // namespace
}  // namespace sheaf

// The products of experts against fp64 sums of the same bf16 values.
#include "cuda/gemm/grouped.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

#include "cuda/base/devices.h"
#include "cuda/gemm/gemm.h"
#include "cuda/gemm/grouped_hopper.h"
#include "tests/cuda/activated.h"
#include "tests/cuda/copies.h"
#include "tests/cuda/need_gpu.h"

namespace sheaf {
namespace {

using namespace cuda;
using test::poisoned;
using test::to_device;
using test::to_host;

std::vector<bf16> make_values(int64_t count, float spread, std::mt19937& random) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<bf16> values(static_cast<size_t>(count));
  for (bf16& value : values) value = __float2bfloat16(normal(random));
  return values;
}

/// So large that clamps are reached; empty where the epilogue has none.
std::vector<float> make_bias(Epilogue epilogue, int64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> bias(has_bias(epilogue) ? static_cast<size_t>(count) : 0);
  for (float& value : bias) value = normal(random);
  return bias;
}

std::vector<int32_t> offsets_of(const std::vector<int32_t>& counts) {
  std::vector<int32_t> offsets{0};
  for (const int32_t count : counts) offsets.push_back(offsets.back() + count);
  return offsets;
}

struct Size {
  int64_t n, k;
};

/// Whose kernel multiplies.
enum class By { ours, ampere, hopper };

constexpr int64_t kGuard = 3;  // rows after the last one, which nothing may write

/// [gathered rows + guard, n, or n / 2 where the epilogue is gated]. `sources` empty: rows lie in order.
std::vector<bf16> multiply(Epilogue epilogue, const std::vector<bf16>& in, const std::vector<bf16>& weight,
                           const std::vector<int32_t>& sources, const std::vector<int32_t>& counts,
                           const Size& size, By by = By::ours, const std::vector<float>& bias = {}) {
  const auto d_bias = to_device(bias);
  const Gates gates(activation_of(epilogue), d_bias.data());
  const std::vector<int32_t> offsets = offsets_of(counts);
  const auto d_in = to_device(in), d_weight = to_device(weight);
  const auto d_sources = to_device(sources), d_offsets = to_device(offsets);
  const int64_t width = is_gated(epilogue) ? size.n / 2 : size.n;
  const auto out = poisoned<bf16>((offsets.back() + kGuard) * width);
  const GroupedRows rows{d_in.data(), d_sources.data(), d_offsets.data(),
                         static_cast<int32_t>(counts.size())};
  if (by == By::ampere) {
    const auto room = poisoned<std::byte>(ampere_grouped_bytes(rows.experts));
    multiply_grouped_ampere(rows, d_weight.data(), size.n, size.k, room.data(), out.data(), nullptr);
    check(cudaDeviceSynchronize(), "product by CUTLASS");  // before the room is freed
  } else if (by == By::hopper && is_gated(epilogue)) {
    multiply_grouped_gated_hopper(gates, rows, offsets.back(), d_weight.data(), width, size.k, out.data(),
                                  nullptr);
  } else if (by == By::hopper) {
    multiply_grouped_hopper(rows, offsets.back(), d_weight.data(), size.n, size.k, out.data(), nullptr);
  } else if (is_gated(epilogue))
    multiply_grouped_gated(gates, rows, d_weight.data(), width, size.k, out.data(), nullptr);
  else
    multiply_grouped(rows, d_weight.data(), size.n, size.k, out.data(), nullptr);
  check(cudaDeviceSynchronize(), "product");
  return to_host(out);
}

double number(bf16 value) {
  return static_cast<double>(__bfloat162float(value));
}

/// Relative error of the rows `step` apart.
double error_of(Epilogue epilogue, const std::vector<bf16>& got, const std::vector<bf16>& in,
                const std::vector<bf16>& weight, const std::vector<int32_t>& sources,
                const std::vector<int32_t>& counts, const Size& size, int32_t step,
                const std::vector<float>& bias = {}) {
  const std::vector<int32_t> offsets = offsets_of(counts);
  const int64_t width = is_gated(epilogue) ? size.n / 2 : size.n;
  double error = 0, square = 0;
  std::vector<double> sums(static_cast<size_t>(size.n));
  for (size_t expert = 0; expert < counts.size(); ++expert) {
    for (int32_t row = offsets[expert]; row < offsets[expert + 1]; ++row) {
      if (row % step != 0 && row + 1 != offsets[expert + 1]) continue;
      const int64_t from = sources.empty() ? row : sources[static_cast<size_t>(row)];
      for (int64_t col = 0; col < size.n; ++col) {
        const auto of_weight = static_cast<size_t>((static_cast<int64_t>(expert) * size.n + col) * size.k),
                   of_in = static_cast<size_t>(from * size.k);
        double sum = 0;
        for (size_t i = 0; i < static_cast<size_t>(size.k); ++i)
          sum += number(in[of_in + i]) * number(weight[of_weight + i]);
        if (!bias.empty())
          sum += static_cast<double>(bias[expert * static_cast<size_t>(size.n) + static_cast<size_t>(col)]);
        sums[static_cast<size_t>(col)] = sum;
      }
      for (int64_t col = 0; col < width; ++col) {
        double right = sums[static_cast<size_t>(col)];
        if (is_gated(epilogue)) {
          const auto gate = static_cast<size_t>(col / 8 * 16 + col % 8);
          right = test::gated(activation_of(epilogue), sums[gate], sums[gate + 8]);
        }
        const double difference = number(got[static_cast<size_t>(row * width + col)]) - right;
        error += difference * difference;
        square += right * right;
      }
    }
  }
  return std::sqrt(error / square);
}

const std::vector<std::vector<int32_t>> kSpreads{
    {0, 1, 5, 128, 129, 0, 300, 64, 16, 17}, {1}, {700}, {0, 0, 0, 257}, {2, 0, 0, 0}};
constexpr Size kSizes[] = {{16, 8}, {48, 24}, {272, 72}, {512, 200}, {528, 136}};

/// One product against plain sums; what lies behind its rows stays as it was.
void compare(Epilogue epilogue, const std::vector<int32_t>& counts, const Size& size, bool gathered, By by,
             std::mt19937& random) {
  const int32_t rows = offsets_of(counts).back(), in_rows = gathered ? rows / 2 + 1 : rows;
  SCOPED_TRACE(testing::Message() << rows << " rows of " << counts.size() << " experts, " << size.n << " x "
                                  << size.k << (gathered ? ", gathered" : "") << ", epilogue "
                                  << static_cast<int>(epilogue));
  const std::vector<bf16> weight = make_values(static_cast<int64_t>(counts.size()) * size.n * size.k,
                                               1 / std::sqrt(static_cast<float>(size.k)), random);
  const std::vector<bf16> in = make_values(in_rows * size.k, 1, random);
  std::vector<int32_t> sources;
  for (int32_t row = 0; gathered && row < rows; ++row)
    sources.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(in_rows)));
  const std::vector<float> bias = make_bias(epilogue, static_cast<int64_t>(counts.size()) * size.n, random);
  const std::vector<bf16> got = multiply(epilogue, in, weight, sources, counts, size, by, bias);
  const double error = error_of(epilogue, got, in, weight, sources, counts, size, 7, bias);
  EXPECT_LT(error, 4e-3);
  EXPECT_FALSE(std::isnan(error));
  const auto written = static_cast<size_t>(rows * (is_gated(epilogue) ? size.n / 2 : size.n));
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::isnan(__bfloat162float(got[i])), i >= written) << "value " << i << " of " << written;
}

TEST(Grouped, EqualsPlainSums) {
  NEED_GPU();
  std::mt19937 random(5);
  for (const std::vector<int32_t>& counts : kSpreads)
    for (const Size& size : kSizes)
      for (const bool gathered : {false, true})
        for (const Epilogue epilogue :
             {Epilogue::store, Epilogue::swiglu, Epilogue::geglu, Epilogue::clamped})
          compare(epilogue, counts, size, gathered, By::ours, random);
}

#define NEED_CUTLASS()                                                   \
  NEED_GPU();                                                            \
  SKIP_UNLESS(ampere_grouped_bytes(1) > 0, ::sheaf::test::Lacking::tool, \
              "this program was built without CUTLASS")

TEST(Grouped, CutlassEqualsPlainSums) {
  NEED_CUTLASS();
  std::mt19937 random(13);
  for (const std::vector<int32_t>& counts : kSpreads)
    for (const Size& size : kSizes) compare(Epilogue::store, counts, size, false, By::ampere, random);
}

TEST(Grouped, HopperEqualsPlainSums) {
  NEED_HOPPER();
  std::mt19937 random(10);
  for (const std::vector<int32_t>& counts : kSpreads)
    for (const Size& size : kSizes) {
      ASSERT_TRUE(grouped_hopper_products(size.n, size.k));
      for (const Epilogue epilogue : {Epilogue::store, Epilogue::swiglu, Epilogue::geglu, Epilogue::clamped})
        compare(epilogue, counts, size, false, By::hopper, random);
    }
}

/// The products of every `step`th row alone must be those among all rows, to the bit.
void compare_alone(Epilogue epilogue, By by, int32_t step, std::mt19937& random) {
  const Size size{528, 200};
  const std::vector<bf16> weight = make_values(3 * size.n * size.k, 0.1f, random);
  const std::vector<bf16> in = make_values(500 * size.k, 1, random);
  const std::vector<int32_t> counts{150, 290, 60}, offsets = offsets_of(counts);
  std::vector<int32_t> kept, fewer(3, 0);
  std::vector<bf16> some_in;
  for (int32_t row = 0, expert = 0; row < 500; ++row) {
    while (row >= offsets[static_cast<size_t>(expert) + 1]) ++expert;
    if (row % step != 1) continue;
    kept.push_back(row);
    ++fewer[static_cast<size_t>(expert)];
    const auto from = in.begin() + row * size.k;
    some_in.insert(some_in.end(), from, from + size.k);
  }
  const auto width = static_cast<size_t>(is_gated(epilogue) ? size.n / 2 : size.n);
  const std::vector<float> bias = make_bias(epilogue, 3 * size.n, random);
  const std::vector<bf16> all = multiply(epilogue, in, weight, {}, counts, size, by, bias);
  const std::vector<bf16> some = multiply(epilogue, some_in, weight, {}, fewer, size, by, bias);
  for (size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(std::memcmp(&some[i * width], &all[static_cast<size_t>(kept[i]) * width], 2 * width), 0)
        << "row " << kept[i] << ", epilogue " << static_cast<int>(epilogue);
}

TEST(Grouped, RowsDoNotDependOnTheirNeighbours) {
  NEED_GPU();
  std::mt19937 random(7);
  for (const Epilogue epilogue : {Epilogue::store, Epilogue::swiglu, Epilogue::clamped})
    for (const int32_t step : {2, 7, 61}) compare_alone(epilogue, By::ours, step, random);
}

TEST(Grouped, CutlassRowsDoNotDependOnTheirNeighbours) {
  NEED_CUTLASS();
  std::mt19937 random(14);
  for (const int32_t step : {2, 7, 61}) compare_alone(Epilogue::store, By::ampere, step, random);
}

TEST(Grouped, HopperRowsDoNotDependOnTheirNeighbours) {
  NEED_HOPPER();
  std::mt19937 random(11);
  for (const Epilogue epilogue : {Epilogue::store, Epilogue::swiglu, Epilogue::clamped})
    for (const int32_t step : {2, 7, 61}) compare_alone(epilogue, By::hopper, step, random);
}

/// Experts one part after the other, as packed weights are expanded, give what all together give.
TEST(Grouped, PartsOfTheExpertsGiveTheSameBits) {
  NEED_GPU();
  std::mt19937 random(12);
  const Size size{272, 72};
  const std::vector<int32_t> counts{40, 0, 130, 7, 0, 200, 1}, offsets = offsets_of(counts);
  const auto experts = static_cast<int32_t>(counts.size());
  const auto weight = to_device(make_values(experts * size.n * size.k, 0.1f, random)),
             in = to_device(make_values(offsets.back() * size.k, 1, random));
  const auto d_offsets = to_device(offsets);
  for (const By by : {By::ours, By::ampere, By::hopper}) {
    if (by == By::ampere && ampere_grouped_bytes(1) == 0) continue;
    if (by == By::hopper && !grouped_hopper_products(size.n, size.k)) continue;
    const auto room = poisoned<std::byte>(std::max<int64_t>(ampere_grouped_bytes(experts), 1));
    std::vector<std::vector<bf16>> results;
    for (const int32_t at_once : {experts, 3, 1}) {
      const auto out = poisoned<bf16>(offsets.back() * size.n);
      for (int32_t first = 0; first < experts; first += at_once) {
        const GroupedRows rows{in.data(), nullptr, d_offsets.data() + first,
                               std::min(at_once, experts - first)};
        const bf16* const own = weight.data() + first * size.n * size.k;
        if (by == By::ampere)
          multiply_grouped_ampere(rows, own, size.n, size.k, room.data(), out.data(), nullptr);
        else if (by == By::hopper)
          multiply_grouped_hopper(rows, offsets.back(), own, size.n, size.k, out.data(), nullptr);
        else
          multiply_grouped(rows, own, size.n, size.k, out.data(), nullptr);
      }
      check(cudaDeviceSynchronize(), "products");
      results.push_back(to_host(out));
      EXPECT_EQ(std::memcmp(results.back().data(), results[0].data(), results[0].size() * sizeof(bf16)), 0)
          << "by " << static_cast<int>(by) << ", " << at_once << " at once";
      EXPECT_FALSE(
          std::ranges::any_of(results.back(), [](bf16 x) { return std::isnan(__bfloat162float(x)); }));
    }
  }
}

TEST(Grouped, ManyExpertsOrOne) {
  NEED_GPU();
  std::mt19937 random(6);
  const Size size{272, 64};
  const std::vector<bf16> weight = make_values(kMostGroups * size.n * size.k, 0.125f, random);
  const std::vector<bf16> in = make_values(4000 * size.k, 1, random);
  std::vector<std::vector<int32_t>> spreads;
  spreads.emplace_back(kMostGroups, 1);
  spreads.emplace_back(kMostGroups, 0).back() = 1000;
  spreads.emplace_back(kMostGroups, 0).front() = 1000;
  spreads.emplace_back(kMostGroups - 1, 0)[300] = 3000;
  std::vector<int32_t>& uneven = spreads.emplace_back(kMostGroups, 0);
  for (int32_t left = 4000; left > 0;) {
    const auto more = std::min(left, static_cast<int32_t>(random() % 200));
    uneven[random() % uneven.size()] += more;
    left -= more;
  }
  for (const std::vector<int32_t>& counts : spreads) {
    for (const By by : {By::ours, By::ampere, By::hopper}) {
      if (by == By::ampere && ampere_grouped_bytes(1) == 0) continue;
      if (by == By::hopper && !grouped_hopper_products(size.n, size.k)) continue;
      const std::vector<bf16> got = multiply(Epilogue::store, in, weight, {}, counts, size, by);
      EXPECT_LT(error_of(Epilogue::store, got, in, weight, {}, counts, size, 13), 4e-3)
          << "by " << static_cast<int>(by);
    }
  }
}

}  // namespace
}  // namespace sheaf

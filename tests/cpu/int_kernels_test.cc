#include "cpu/kernels/int_kernels.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "tests/cpu/random_floats.h"

namespace sheaf {
namespace {

/// Vectors in groups, with their scales.
struct Whole {
  std::vector<int8_t> data;
  std::vector<float> scales;
};

Whole make_whole(const IntLayout& layout, const std::vector<float>& x, int64_t count, int64_t inputs,
                 int planes) {
  const int64_t together = layout.together, groups = (count + together - 1) / together;
  const int64_t bytes = layout.bytes(inputs, planes);
  Whole whole{std::vector<int8_t>(static_cast<size_t>(groups * bytes), 99),
              std::vector<float>(static_cast<size_t>(groups * together))};
  for (int64_t i = 0; i < count; ++i)
    whole.scales[static_cast<size_t>(i)] = quantize(x.data() + i * inputs, inputs, planes, layout,
                                                    i % together, whole.data.data() + i / together * bytes);
  return whole;
}

IntFactors factors_of(const IntLayout& layout, const Whole& a, int64_t rows, const Whole& b, int64_t inputs,
                      int64_t panels, int planes) {
  return {.a = a.data.data(),
          .rows = rows,
          .b = b.data.data(),
          .panels = panels,
          .panel_stride = layout.bytes(inputs, planes),
          .chunk_stride = layout.chunk_bytes(planes),
          .chunks = layout.chunks(inputs),
          .planes = planes};
}

std::vector<float> product(const IntKernels& kernels, const std::vector<float>& x,
                           const std::vector<float>& weights, int64_t rows, int64_t inputs, int64_t panels,
                           int planes) {
  const Whole a = make_whole(kernels.rows, x, rows, inputs, planes);
  const Whole b = make_whole(kernels.panels, weights, panels * kPanel, inputs, planes);
  // What lies behind the last row must stay as it is.
  std::vector<float> c(static_cast<size_t>((rows + 1) * panels * kPanel), 7.0f);
  std::vector<float*> to;
  for (int64_t i = 0; i < rows; ++i) to.push_back(c.data() + i * panels * kPanel);
  kernels.multiply(factors_of(kernels.panels, a, rows, b, inputs, panels, planes), a.scales.data(),
                   b.scales.data(), to.data());
  for (int64_t i = rows * panels * kPanel; i < (rows + 1) * panels * kPanel; ++i)
    EXPECT_EQ(c[static_cast<size_t>(i)], 7.0f) << kernels.name << " writes behind its rows";
  c.resize(static_cast<size_t>(rows * panels * kPanel));
  return c;
}

struct Size {
  int64_t rows, inputs, panels;
};

std::vector<Size> odd_sizes() {
  std::vector<Size> sizes;
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 31, 32, 33})
    for (const int64_t inputs : {1, 15, 16, 17, 64, 100, 576}) sizes.push_back({rows, inputs, 1 + rows % 6});
  sizes.push_back({37, 1536, 2});
  return sizes;
}

TEST(IntKernels, MultiplyIsTheSumOfProducts) {
  for (const Size& size : odd_sizes())
    for (const int planes : {1, 2}) {
      const auto x = random_floats(static_cast<size_t>(size.rows * size.inputs), 1);
      const auto weights = random_floats(static_cast<size_t>(size.panels * kPanel * size.inputs), 2);
      const auto c = product(plain_int_kernels(), x, weights, size.rows, size.inputs, size.panels, planes);
      // Rounding to ±127 (±32512) of a normal vector loses at most half a step of each factor.
      const double step = planes == 1 ? 1.0 / 127 : 1.0 / 32512;
      const double room = 4.5 * 4.5 * step * std::sqrt(static_cast<double>(size.inputs)) + 1e-5;
      for (int64_t i = 0; i < size.rows; ++i)
        for (int64_t n = 0; n < size.panels * kPanel; ++n) {
          double sum = 0;
          for (int64_t k = 0; k < size.inputs; ++k)
            sum += static_cast<double>(x[static_cast<size_t>(i * size.inputs + k)]) *
                   static_cast<double>(weights[static_cast<size_t>(n * size.inputs + k)]);
          ASSERT_NEAR(static_cast<double>(c[static_cast<size_t>(i * size.panels * kPanel + n)]), sum, room)
              << size.rows << " rows, " << size.inputs << " inputs, " << planes << " planes";
        }
    }
}

TEST(IntKernels, AllKernelsGiveTheSameBits) {
  for (const IntKernels* kernels : all_int_kernels())
    for (const Size& size : odd_sizes())
      for (const int planes : {1, 2}) {
        const auto x = random_floats(static_cast<size_t>(size.rows * size.inputs), 3);
        const auto weights = random_floats(static_cast<size_t>(size.panels * kPanel * size.inputs), 4);
        const auto run = [&](const IntKernels& which) {
          return product(which, x, weights, size.rows, size.inputs, size.panels, planes);
        };
        const auto expected = run(plain_int_kernels()), c = run(*kernels);
        ASSERT_EQ(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)), 0)
            << kernels->name << ", " << size.rows << " rows, " << size.inputs << " inputs, " << planes
            << " planes";
      }
}

TEST(IntKernels, AllKernelsAddTheSameSums) {
  for (const IntKernels* kernels : all_int_kernels())
    for (const Size& size : odd_sizes()) {
      const auto x = random_floats(static_cast<size_t>(size.rows * size.inputs), 7);
      const auto weights = random_floats(static_cast<size_t>(size.panels * kPanel * size.inputs), 8);
      const auto run = [&](const IntKernels& which) {
        const Whole a = make_whole(which.rows, x, size.rows, size.inputs, 2);
        const Whole b = make_whole(which.panels, weights, size.panels * kPanel, size.inputs, 2);
        const int64_t width = size.panels * 2 * kPanel;
        std::vector<int32_t> sums(static_cast<size_t>((size.rows + 1) * width), 5);
        std::vector<int32_t*> to;
        for (int64_t i = 0; i < size.rows; ++i) to.push_back(sums.data() + i * width);
        which.add(factors_of(which.panels, a, size.rows, b, size.inputs, size.panels, 2), to.data());
        which.add(factors_of(which.panels, a, size.rows, b, size.inputs, size.panels, 2), to.data());
        return sums;
      };
      ASSERT_EQ(run(*kernels), run(plain_int_kernels()))
          << kernels->name << ", " << size.rows << " rows, " << size.inputs << " inputs";
    }
}

TEST(IntKernels, ARowDoesNotDependOnTheOthers) {
  constexpr int64_t kRows = 13, kInputs = 100;
  const auto x = random_floats(kRows * kInputs, 5);
  const auto weights = random_floats(2 * kPanel * kInputs, 6);
  for (const IntKernels* kernels : all_int_kernels())
    for (const int planes : {1, 2}) {
      const auto all = product(*kernels, x, weights, kRows, kInputs, 2, planes);
      for (int64_t row = 0; row < kRows; ++row) {
        const std::vector<float> alone(x.begin() + row * kInputs, x.begin() + (row + 1) * kInputs);
        const auto c = product(*kernels, alone, weights, 1, kInputs, 2, planes);
        ASSERT_EQ(std::memcmp(c.data(), all.data() + row * 2 * kPanel, c.size() * sizeof(float)), 0)
            << kernels->name << ", row " << row;
      }
    }
}

constexpr IntLayout kLayout{16, 4, 1};

/// The numbers that a vector became, of one plane.
std::vector<int> bytes_of(const std::vector<float>& x, float& scale) {
  std::vector<int8_t> out(static_cast<size_t>(kLayout.bytes(static_cast<int64_t>(x.size()), 1)));
  scale = quantize(x.data(), static_cast<int64_t>(x.size()), 1, kLayout, 0, out.data());
  return {out.begin(), out.begin() + static_cast<int64_t>(x.size())};
}

TEST(IntKernels, RoundsToTheNearestAndKeepsTheLargest) {
  float scale = 0;
  EXPECT_EQ(bytes_of({127, -127, 0.4f, 0.6f, -0.6f, 2.5f, 3.5f}, scale),
            (std::vector<int>{127, -127, 0, 1, -1, 2, 4}));
  EXPECT_EQ(scale, 1);
  EXPECT_EQ(bytes_of({0, 0, 0}, scale), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(scale, 0);
  bytes_of({1e-45f, 0}, scale);
  EXPECT_LT(scale, 1e-40f);
}

TEST(IntKernels, InfinityAndNanPropagate) {
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  float scale = 0;
  bytes_of({1, -infinity, 2}, scale);
  EXPECT_EQ(scale, infinity);
  bytes_of({1, nan, infinity}, scale);
  EXPECT_TRUE(std::isnan(scale));
}

TEST(IntKernels, TwoPlanesMakeUpTheWholeNumber) {
  constexpr int64_t kInputs = 300;
  std::vector<float> x(kInputs);
  for (int64_t i = 0; i < kInputs; ++i) x[static_cast<size_t>(i)] = static_cast<float>(32512 - 217 * i);
  std::vector<int8_t> out(static_cast<size_t>(kLayout.bytes(kInputs, 2)));
  EXPECT_EQ(quantize(x.data(), kInputs, 2, kLayout, 0, out.data()), 1);
  for (int64_t i = 0; i < kInputs; ++i) {
    const auto place = static_cast<size_t>(i / 16 * 32 + i % 16);
    EXPECT_EQ(256 * out[place] + out[place + 16], 32512 - 217 * i) << "input " << i;
  }
}

}  // namespace
}  // namespace sheaf

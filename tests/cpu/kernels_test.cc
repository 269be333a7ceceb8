#include "cpu/kernels/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numbers>
#include <random>
#include <vector>

#include "tests/cpu/random_floats.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

/// Every set of kernels that this machine can run.
std::vector<const Kernels*> all_kernels() {
  std::vector<const Kernels*> all{&base_kernels()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back(&avx2_kernels());
  if (__builtin_cpu_supports("avx512f")) all.push_back(&avx512_kernels());
#endif
  return all;
}

std::vector<float> product(const Kernels& kernels, const std::vector<float>& a, const std::vector<float>& b,
                           int64_t rows, int64_t depth, int64_t panels) {
  std::vector<float> c(static_cast<size_t>(rows * panels * kPanel), 7.0f);
  std::vector<const float*> from;
  std::vector<float*> to;
  for (int64_t i = 0; i < rows; ++i) {
    from.push_back(a.data() + i * depth);
    to.push_back(c.data() + i * panels * kPanel);
  }
  kernels.multiply(from.data(), to.data(), rows, b.data(), kPanel, kPanel * depth, depth, panels, false);
  return c;
}

TEST(Kernels, MultiplyIsTheSumOfProducts) {
  for (const Kernels* kernels : all_kernels())
    for (int64_t rows = 1; rows <= 13; ++rows)
      for (const int64_t depth : {1, 3, 4, 7, 64, 129})
        for (const int64_t panels : {1, 2, 3, 5, 8}) {
          const auto a = random_floats(static_cast<size_t>(rows * depth), 1);
          const auto b = random_floats(static_cast<size_t>(panels * depth * kPanel), 2);
          const auto c = product(*kernels, a, b, rows, depth, panels);
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t n = 0; n < panels * kPanel; ++n) {
              double sum = 0;
              for (int64_t k = 0; k < depth; ++k)
                sum += static_cast<double>(a[static_cast<size_t>(i * depth + k)]) *
                       static_cast<double>(
                           b[static_cast<size_t>((n / kPanel * depth + k) * kPanel + n % kPanel)]);
              ASSERT_NEAR(static_cast<double>(c[static_cast<size_t>(i * panels * kPanel + n)]), sum, 2e-5)
                  << kernels->name << ", " << rows << " rows, depth " << depth << ", panel " << n / kPanel;
            }
        }
}

TEST(Kernels, MultiplyGivesTheSameBitsHoweverItIsCut) {
  constexpr int64_t kDepth = 77;
  constexpr int64_t kRows = 11;
  const auto a = random_floats(kRows * kDepth, 3);
  const auto b = random_floats(5 * kDepth * kPanel, 4);
  for (const Kernels* kernels : all_kernels()) {
    const auto expected = product(*kernels, a, b, kRows, kDepth, 5);
    for (int64_t cut = 1; cut < kDepth; ++cut)
      for (int64_t row = 0; row < kRows; ++row)
        for (int64_t panel = 0; panel < 5; ++panel) {
          float c[kPanel];
          float* to = c;
          const float* from = a.data() + row * kDepth;
          const float* column = b.data() + panel * kDepth * kPanel;
          kernels->multiply(&from, &to, 1, column, kPanel, 0, cut, 1, false);
          from += cut;
          kernels->multiply(&from, &to, 1, column + cut * kPanel, kPanel, 0, kDepth - cut, 1, true);
          ASSERT_EQ(std::memcmp(c, expected.data() + (row * 5 + panel) * kPanel, sizeof c), 0)
              << kernels->name << ", cut at " << cut;
        }
  }
}

TEST(Kernels, SoftmaxIsAccurate) {
  for (const Kernels* kernels : all_kernels())
    for (const int64_t n : {1, 2, 15, 16, 17, 100, 1000}) {
      const auto scores = random_floats(static_cast<size_t>(n), 5, 10);
      std::vector<float> weights(static_cast<size_t>(round_up_to_panel(n)), 1e30f);
      std::copy(scores.begin(), scores.end(), weights.begin());
      const float sum = kernels->softmax(weights.data(), n);
      const double highest = static_cast<double>(*std::max_element(scores.begin(), scores.end()));
      double expected_sum = 0;
      for (size_t i = 0; i < scores.size(); ++i) {
        const double expected = std::exp(static_cast<double>(scores[i] - static_cast<float>(highest)));
        expected_sum += expected;
        EXPECT_NEAR(static_cast<double>(weights[i]) / expected, 1, 3e-7)
            << kernels->name << " at " << scores[i];
      }
      EXPECT_NEAR(static_cast<double>(sum) / expected_sum, 1, 1e-6);
    }
}

TEST(Kernels, SoftmaxOfFarScoresIsZero) {
  for (const Kernels* kernels : all_kernels()) {
    std::vector<float> scores(kPanel);
    scores[0] = 5;
    scores[1] = -200;
    scores[2] = -INFINITY;
    EXPECT_EQ(kernels->softmax(scores.data(), 3), 1);
    EXPECT_EQ(scores[0], 1);
    EXPECT_EQ(scores[1], 0);
    EXPECT_EQ(scores[2], 0);
    EXPECT_EQ(kernels->softmax(scores.data(), 0), 0);
  }
}

TEST(Kernels, WholeWeightsAreAccurate) {
  for (const Kernels* kernels : all_kernels())
    for (const int64_t n : {1, 2, 15, 16, 17, 100, 1000}) {
      const auto scores = random_floats(static_cast<size_t>(n), 5, 5);
      const auto padded = static_cast<size_t>(round_up_to_panel(n));
      std::vector<float> room(padded, 1e30f), logs(padded, 0.0f), inverses(padded, 0.0f);
      std::copy(scores.begin(), scores.end(), room.begin());
      std::vector<double> expected;
      double expected_sum = 0, top = 0;
      for (size_t i = 0; i < scores.size(); ++i) {
        const float scale = 0.5f + static_cast<float>(i % 7);
        logs[i] = std::log(scale);
        inverses[i] = 1 / scale;
        const double weight = std::exp(static_cast<double>(scores[i]));
        expected_sum += weight;
        expected.push_back(weight * static_cast<double>(scale));
        top = std::max(top, expected.back());
      }
      std::vector<int8_t> high(padded), low(padded);
      const float sum =
          kernels->weigh(room.data(), logs.data(), inverses.data(), n, 0, high.data(), low.data(), -INFINITY);
      EXPECT_NEAR(static_cast<double>(sum) * top / expected_sum, 1, 1e-5) << kernels->name;
      for (size_t i = 0; i < padded; ++i) {
        const double weight = (256.0 * high[i] + low[i]) / static_cast<double>(Kernels::kMostWeight);
        EXPECT_NEAR(weight, i < expected.size() ? expected[i] / top : 0, 3e-5)
            << kernels->name << " at " << i;
      }
    }
}

TEST(Kernels, WholeWeightsOfLargeScoresAreAccurate) {
  for (const Kernels* kernels : all_kernels())
    for (const float base : {65536.0f, 3e6f, -3e6f, 1e9f, -1e9f, 1e30f}) {
      std::vector<float> scores(kPanel, base), logs(kPanel, 0.0f), inverses(kPanel, 1.0f);
      scores[1] = base - std::abs(base);  // next to nothing
      std::vector<int8_t> high(kPanel), low(kPanel);
      const float sum = kernels->weigh(scores.data(), logs.data(), inverses.data(), 3, 0, high.data(),
                                       low.data(), -INFINITY);
      EXPECT_NEAR(sum, 2, 1e-5f) << kernels->name << ", " << base;
      for (const size_t i : {size_t{0}, size_t{2}})
        EXPECT_EQ(256 * high[i] + low[i], static_cast<int>(Kernels::kMostWeight))
            << kernels->name << ", " << base;
      EXPECT_EQ(256 * high[1] + low[1], 0) << kernels->name << ", " << base;
    }
}

TEST(Kernels, ASinkIsPartOfTheSumAlone) {
  for (const Kernels* kernels : all_kernels())
    for (const float sink : {-30.0f, -1.0f, 0.5f, 3.0f, 40.0f, 300.0f}) {
      std::vector<float> scores{1, 2, 3};
      scores.resize(kPanel);
      // As of values: a scale of 1/1000 must not make the sink a thousand times as heavy.
      std::vector<float> logs(kPanel, std::log(0.001f)), inverses(kPanel, 1000.0f), alone = scores;
      std::vector<int8_t> high(kPanel), low(kPanel), high_alone(kPanel), low_alone(kPanel);
      const float sum =
          kernels->weigh(scores.data(), logs.data(), inverses.data(), 3, 0, high.data(), low.data(), sink);
      kernels->weigh(alone.data(), logs.data(), inverses.data(), 3, 0, high_alone.data(), low_alone.data(),
                     -INFINITY);
      EXPECT_EQ(high, high_alone);
      EXPECT_EQ(low, low_alone);
      const double weights = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
      const double expected = (weights + std::exp(static_cast<double>(sink))) / (std::exp(3.0) * 0.001);
      if (expected > 3e38)
        EXPECT_TRUE(std::isinf(sum)) << kernels->name;
      else
        EXPECT_NEAR(static_cast<double>(sum) / expected, 1, 2e-5) << kernels->name << ", " << sink;
    }
}

TEST(Kernels, WholeWeightsPropagateNan) {
  for (const Kernels* kernels : all_kernels())
    for (const bool in_score : {true, false}) {
      std::vector<float> scores(kPanel, 1.0f), logs(kPanel, 0.0f), inverses(kPanel, 1.0f);
      (in_score ? scores : logs)[2] = -NAN;
      std::vector<int8_t> high(kPanel), low(kPanel);
      EXPECT_TRUE(std::isnan(kernels->weigh(scores.data(), logs.data(), inverses.data(), 5, 0, high.data(),
                                            low.data(), -INFINITY)))
          << kernels->name;
    }
}

TEST(Kernels, NormIsAccurate) {
  for (const Kernels* kernels : all_kernels())
    for (const size_t n : {1, 7, 16, 30, 64, 577}) {
      const auto x = random_floats(n, 6, 3);
      const auto y = random_floats(n, 7, 3);
      std::vector<float> out(n);
      kernels->rms_norm(x.data(), y.data(), static_cast<int64_t>(n), 1e-5f, out.data());
      double squares = 0;
      for (const float value : x) squares += static_cast<double>(value) * static_cast<double>(value);
      const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
      for (size_t i = 0; i < n; ++i)
        EXPECT_NEAR(static_cast<double>(out[i]),
                    static_cast<double>(x[i]) * static_cast<double>(y[i]) * scale, 1e-5);
    }
}

TEST(Kernels, ActivationIsAccurate) {
  constexpr size_t kRows = 5, kStride = 40, kOutStride = 20, kWidth = kPanel;
  const auto both = random_floats(kRows * kStride, 7, 3);
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  const auto gelu = [](double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  };
  for (const Kernels* kernels : all_kernels())
    for (const bool is_gelu : {false, true}) {
      std::vector<float> out(kRows * kOutStride, 7.0f);
      (is_gelu ? kernels->gated_gelu : kernels->gated_silu)(both.data(), kStride, kRows, out.data(),
                                                            kOutStride);
      for (size_t row = 0; row < kRows; ++row)
        for (size_t i = 0; i < kOutStride; ++i) {
          const auto gate = static_cast<double>(both[row * kStride + i]);
          const auto up = static_cast<double>(both[row * kStride + kWidth + i]);
          const double expected = i < kWidth ? (is_gelu ? gelu(gate) : silu(gate)) * up : 7;
          EXPECT_NEAR(static_cast<double>(out[row * kOutStride + i]), expected, 1e-5);
        }
    }
}

TEST(Kernels, ClampedActivationIsAccurate) {
  std::vector<float> gates{-1e30f, -90, -7.5f, -1, -0.01f, 0, 0.5f, 2, 6.9f, 7, 7.1f, 50, 1e30f, 3, -3, 1};
  std::vector<float> ups{1, 2, -7.5f, 9, 7, -1, -8, -0.5f, 0, 3, -1e30f, 1e30f, 2, 1, 1, 0};
  std::vector<float> both = gates, out(kPanel);
  both.insert(both.end(), ups.begin(), ups.end());
  for (const Kernels* kernels : all_kernels()) {
    kernels->gated_clamped(both.data(), 2 * kPanel, 1, out.data(), kPanel);
    for (size_t i = 0; i < out.size(); ++i) {
      const double gate = std::min(static_cast<double>(gates[i]), 7.0);
      const double up = std::clamp(static_cast<double>(ups[i]), -7.0, 7.0);
      const double expected = gate / (1 + std::exp(-1.702 * gate)) * (up + 1);
      EXPECT_NEAR(static_cast<double>(out[i]), expected, 1e-5 + 1e-6 * std::abs(expected))
          << kernels->name << ": " << gates[i] << ", " << ups[i];
    }
    for (const size_t at : std::initializer_list<size_t>{3, kPanel + 4}) {
      std::vector<float> bad = both;
      bad[at] = NAN;
      kernels->gated_clamped(bad.data(), 2 * kPanel, 1, out.data(), kPanel);
      EXPECT_TRUE(std::isnan(out[at % kPanel])) << kernels->name;
    }
  }
}

TEST(Kernels, SoftCapIsAccurateNearZeroAndFarFromIt) {
  for (const Kernels* kernels : all_kernels())
    for (const double scale : {0.001, 0.1, 1.0, 4.0, 1e4}) {
      constexpr size_t kCount = 33;
      auto x = random_floats(kCount + kPanel, 8, static_cast<float>(scale));
      const auto before = x;
      kernels->soft_cap(x.data(), kCount, 2);
      for (size_t i = 0; i < kCount; ++i) {
        const double expected = 2 * std::tanh(static_cast<double>(before[i]) / 2);
        EXPECT_NEAR(static_cast<double>(x[i]), expected, 6e-7 * std::max(std::abs(expected), 1e-6))
            << before[i];
      }
    }
}

TEST(Kernels, ActivationOfExtremesIsFinite) {
  for (const Kernels* kernels : all_kernels()) {
    std::vector<float> both(2 * kPanel, 1.0f), out(kPanel);
    std::ranges::copy(std::vector<float>{-1e30f, -200, 200, 1e30f}, both.begin());
    for (const auto gated : {kernels->gated_silu, kernels->gated_gelu}) {
      gated(both.data(), 2 * kPanel, 1, out.data(), kPanel);
      EXPECT_NEAR(out[0], 0, 1e-6f);
      EXPECT_NEAR(out[1], 0, 1e-6f);
      EXPECT_EQ(out[2], 200);
      EXPECT_EQ(out[3], 1e30f);
    }
  }
}

TEST(Kernels, InstructionSetsWithFusedMultiplyAddAgreeToTheBit) {
  const auto kernels = all_kernels();
  SKIP_UNLESS(kernels.size() >= 3, test::Lacking::avx512, "needs a machine with both AVX2 and AVX-512");
  const auto a = random_floats(7 * 130, 8);
  const auto b = random_floats(5 * 130 * kPanel, 9);
  EXPECT_EQ(product(*kernels[1], a, b, 7, 130, 5), product(*kernels[2], a, b, 7, 130, 5));
  std::vector<float> first = random_floats(1024, 10, 5);
  std::vector<float> second = first;
  EXPECT_EQ(kernels[1]->softmax(first.data(), 1001), kernels[2]->softmax(second.data(), 1001));
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace sheaf

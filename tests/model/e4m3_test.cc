#include "core/model/e4m3.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

namespace sheaf {
namespace {

TEST(E4m3, KnownValuesAreConverted) {
  EXPECT_EQ(from_e4m3(0x00), 0.0f);
  EXPECT_EQ(from_e4m3(0x01), 0x1p-9f);
  EXPECT_EQ(from_e4m3(0x08), 0x1p-6f);
  EXPECT_EQ(from_e4m3(0x38), 1.0f);
  EXPECT_EQ(from_e4m3(0xb9), -1.125f);
  EXPECT_EQ(from_e4m3(0x7e), 448.0f);
  EXPECT_TRUE(std::isnan(from_e4m3(0x7f)));
  EXPECT_TRUE(std::isnan(from_e4m3(0xff)));
}

TEST(E4m3, EveryNumberComesBack) {
  for (int bits = 0; bits < 256; ++bits) {
    if ((bits & 0x7f) == 0x7f) continue;
    EXPECT_EQ(to_e4m3(from_e4m3(static_cast<uint8_t>(bits))), bits);
  }
  EXPECT_EQ(to_e4m3(std::numeric_limits<float>::quiet_NaN()), 0x7f);
  EXPECT_EQ(to_e4m3(std::numeric_limits<float>::infinity()), 0x7e);
  EXPECT_EQ(to_e4m3(-1e9f), 0xfe);
}

/// Against all 127 numbers that are not negative; of two that are as near, the even one.
TEST(E4m3, RoundsToTheNearest) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponent(-12, 9.5);
  const auto expect_nearest = [](float value) {
    int best = 0;
    for (int bits = 1; bits < 0x7f; ++bits) {
      const auto distance = [&](int of) { return std::fabs(from_e4m3(static_cast<uint8_t>(of)) - value); };
      if (distance(bits) < distance(best) || (distance(bits) == distance(best) && bits % 2 == 0)) best = bits;
    }
    ASSERT_EQ(to_e4m3(value), best) << value;
    ASSERT_EQ(to_e4m3(-value), best | 0x80) << value;
  };
  for (int i = 0; i < 20000; ++i) expect_nearest(std::exp2(exponent(random)));
  for (int bits = 0; bits < 0x7e; ++bits)
    expect_nearest((from_e4m3(static_cast<uint8_t>(bits)) + from_e4m3(static_cast<uint8_t>(bits + 1))) / 2);
}

TEST(E4m3, ARowFillsTheRange) {
  const std::vector<float> row{0.5f, -3.0f, 0.001f, 0.0f};
  std::vector<uint8_t> bits(row.size());
  const float scale = to_e4m3(row, bits.data());
  EXPECT_EQ(scale, 3.0f / 448);
  EXPECT_EQ(bits[1], 0xfe);
  for (size_t i = 0; i < row.size(); ++i)
    EXPECT_NEAR(from_e4m3(bits[i]) * scale, row[i], std::fabs(row[i]) / 16);
  const std::vector<float> zeros(5, 0.0f);
  std::vector<uint8_t> none(5, 1);
  EXPECT_TRUE(std::isfinite(to_e4m3(zeros, none.data())));
  EXPECT_EQ(none, std::vector<uint8_t>(5, 0));
}

}  // namespace
}  // namespace sheaf

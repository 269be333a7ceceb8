#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "core/base/error.h"
#include "core/model/model.h"
#include "tests/model/all_types.h"

namespace sheaf {
namespace {

float from_bits(uint32_t high) {
  return std::bit_cast<float>(high << 16);
}

uint16_t converted(float value) {
  uint16_t out = 0;
  to_bf16(DType::f32, reinterpret_cast<const std::byte*>(&value), 1, &out);
  return out;
}

/// Rounding said otherwise: the nearer of the two neighbours, the even one where both are as near.
uint16_t nearest(float value) {
  const uint32_t below = std::bit_cast<uint32_t>(value) >> 16;  // towards zero
  const double down = std::abs(static_cast<double>(value) - static_cast<double>(from_bits(below)));
  // Past the largest number the next step counts as if it were one more number.
  const double up_value = std::isinf(from_bits(below + 1))
                              ? std::copysign(0x1p128, static_cast<double>(value))
                              : static_cast<double>(from_bits(below + 1));
  const double up = std::abs(up_value - static_cast<double>(value));
  return static_cast<uint16_t>(down < up || (down == up && below % 2 == 0) ? below : below + 1);
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(converted(1.0f), 0x3f80);
  EXPECT_EQ(converted(std::bit_cast<float>(0x3f808000U)), 0x3f80);  // a tie: to even, down
  EXPECT_EQ(converted(std::bit_cast<float>(0x3f818000U)), 0x3f82);  // a tie: to even, up
  EXPECT_EQ(converted(std::bit_cast<float>(0x3f808001U)), 0x3f81);
  EXPECT_EQ(converted(-0.0f), 0x8000);
  EXPECT_EQ(converted(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(converted(-std::numeric_limits<float>::infinity()), 0xff80);
  std::mt19937 random(1);
  for (int i = 0; i < 300000; ++i) {
    uint32_t bits = static_cast<uint32_t>(random());
    if (i % 3 == 0) bits = (bits & 0xffff0000U) | 0x8000U;  // ties
    const auto value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(converted(value), nearest(value)) << std::hex << bits;
  }
}

TEST(Bf16, EveryNanIsTheSame) {
  EXPECT_EQ(converted(std::numeric_limits<float>::quiet_NaN()), 0x7fff);
  EXPECT_EQ(converted(std::bit_cast<float>(0xff800001U)), 0x7fff);
  const uint16_t stored[] = {0x7f81, 0xffc0, 0x7f80, 0xff80, 0x0001};
  uint16_t out[5];
  to_bf16(DType::bf16, reinterpret_cast<const std::byte*>(stored), 5, out);
  EXPECT_EQ(std::vector(out, out + 5), (std::vector<uint16_t>{0x7fff, 0x7fff, 0x7f80, 0xff80, 0x0001}));
}

TEST(Bf16, EveryTypeIsItsFp32Rounded) {
  std::mt19937 random(2);
  for (const DType dtype : all_types) {
    // More than one piece and a remainder, at an odd address.
    const int64_t count = 256 * 37;
    std::vector<std::byte> blocks(static_cast<size_t>(count / block_values(dtype) * block_bytes(dtype)) + 1);
    for (std::byte& byte : blocks) byte = static_cast<std::byte>(random() & 0xffU);
    std::vector<float> floats(static_cast<size_t>(count));
    std::vector<uint16_t> got(floats.size());
    to_f32(dtype, blocks.data() + 1, count, floats.data());
    to_bf16(dtype, blocks.data() + 1, count, got.data());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], converted(floats[i])) << dtype_name(dtype) << " value " << i;
  }
}

TEST(Bf16, PartOfABlockIsABug) {
  uint16_t out[64];
  const std::vector<std::byte> block(64);
  EXPECT_THROW(to_bf16(DType::q8_0, block.data(), 31, out), Error);
}

TEST(Bf16, MatrixReadsAdaptersAndPairedRowsToo) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const int64_t rows = 24, cols = 33;
  std::vector<float> values(static_cast<size_t>(rows * cols));
  for (float& value : values) value = normal(random);
  auto delta = std::make_shared<LowRank>();
  delta->rank = 3;
  delta->scale = 0.7f;
  for (int64_t i = 0; i < 3 * cols; ++i) delta->a.push_back(normal(random));
  for (int64_t i = 0; i < 3 * rows; ++i) delta->b.push_back(normal(random));
  for (const bool paired : {false, true}) {
    for (const bool adapted : {false, true}) {
      Matrix matrix;
      matrix.name = "test";
      matrix.rows = rows;
      matrix.cols = cols;
      matrix.data = reinterpret_cast<const std::byte*>(values.data());
      if (paired) matrix.rope_head_dim = 8;
      if (adapted) matrix.adapter = delta;
      const std::vector<float> all = matrix.read_all();
      std::vector<uint16_t> got(static_cast<size_t>(7 * cols));
      matrix.read_bf16(5, 7, got.data());
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got[i], converted(all[static_cast<size_t>(5 * cols) + i])) << paired << adapted << " " << i;
      EXPECT_THROW(matrix.read_bf16(20, 5, got.data()), Error);
    }
  }
}

}  // namespace
}  // namespace sheaf

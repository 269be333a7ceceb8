#include <bit>
#include <cmath>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/model/model.h"
#include "tests/model/all_types.h"
#include "tests/model/golden.h"

namespace sheaf {
namespace {

const std::byte* bytes_of(const std::string& text) {
  return reinterpret_cast<const std::byte*>(text.data());
}

TEST(DType, EveryTypeBecomesTheFloatsOfGgml) {
  const auto goldens = read_golden_json("dtypes.json");
  for (const DType dtype : all_types) {
    if (dtype == DType::f32) continue;
    ASSERT_TRUE(goldens.contains(dtype_name(dtype))) << dtype_name(dtype);
    const auto& golden_of_type = goldens[dtype_name(dtype)];
    const std::string blocks = unhex(golden_of_type["blocks"]);
    const std::vector<float> want = floats_of(unhex(golden_of_type["values"]));
    ASSERT_EQ(
        blocks.size() / static_cast<size_t>(block_bytes(dtype)) * static_cast<size_t>(block_values(dtype)),
        want.size());
    std::vector<float> got(want.size());
    to_f32(dtype, bytes_of(blocks), static_cast<int64_t>(want.size()), got.data());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i], want[i]) << dtype_name(dtype) << " value " << i;
      EXPECT_EQ(std::signbit(got[i]), std::signbit(want[i])) << dtype_name(dtype) << " value " << i;
    }
  }
}

TEST(DType, HalfNanStaysNan) {
  const std::string bytes("\x01\x7c\x00\xfe", 4);
  float out[2];
  to_f32(DType::f16, bytes_of(bytes), 2, out);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_TRUE(std::isnan(out[1]));
}

TEST(DType, DataMayLieAnywhere) {
  // safetensors do not align their tensors.
  const float values[] = {1.5f, -2.25f};
  std::string bytes(1 + sizeof values, '\0');
  std::memcpy(bytes.data() + 1, values, sizeof values);
  float out[2];
  to_f32(DType::f32, bytes_of(bytes) + 1, 2, out);
  EXPECT_EQ(out[0], 1.5f);
  EXPECT_EQ(out[1], -2.25f);
}

TEST(DType, PartOfABlockIsABug) {
  float out[32];
  EXPECT_THROW(to_f32(DType::q8_0, nullptr, 31, out), Error);
}

}  // namespace
}  // namespace sheaf

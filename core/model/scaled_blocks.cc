#include "core/model/scaled_blocks.h"

#include <bit>
#include <cstring>

#include "core/model/e4m3.h"

namespace sheaf {
namespace {

uint32_t scale_word(const std::byte* block) {
  uint32_t bits = 0;
  std::memcpy(&bits, block, sizeof bits);
  return bits;
}
int value_byte(const std::byte* block, int at) {
  return std::to_integer<int>(block[kScaleBytes + at]);
}

}  // namespace

void put_scale(std::byte* block, float scale, uint32_t zero_point) {
  const uint32_t bits = std::bit_cast<uint32_t>(scale) | zero_point;
  std::memcpy(block, &bits, sizeof bits);
}

void e4m3_block(const std::byte* block, int values, float* out) {
  const auto scale = std::bit_cast<float>(scale_word(block));
  for (int i = 0; i < values; ++i) out[i] = scale * from_e4m3(static_cast<uint8_t>(value_byte(block, i)));
}

void int4_block(const std::byte* block, int values, float* out) {
  const uint32_t bits = scale_word(block);
  const auto scale = std::bit_cast<float>(bits & ~kZeroPointBits);
  const auto zero = static_cast<int>(bits & kZeroPointBits);
  for (int i = 0; i < values / 2; ++i) {
    const int pair = value_byte(block, i);
    out[2 * i] = scale * static_cast<float>((pair & 15) - zero);
    out[2 * i + 1] = scale * static_cast<float>((pair >> 4) - zero);
  }
}

void nf4_block(const std::byte* block, float* out) {
  const auto scale = std::bit_cast<float>(scale_word(block));
  for (int i = 0; i < 32; ++i) {
    const int pair = value_byte(block, i);
    out[2 * i] = scale * kNf4.values[pair & 15];
    out[2 * i + 1] = scale * kNf4.values[pair >> 4];
  }
}

}  // namespace sheaf

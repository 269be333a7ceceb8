// The block layouts up to Q6_K are ggml's. Scales are fp16 and quants have at most 6 bits, so every product
// here is exact in fp32 and the result does not depend on whether the compiler fuses it with the addition
// that follows.
#include <array>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "core/model/model.h"
#include "core/model/scaled_blocks.h"

namespace sheaf {
namespace {

struct Layout {
  const char* name;
  int32_t values;
  int32_t bytes;
};

constexpr std::array<Layout, 15> layouts{{
    {"F32", 1, 4},
    {"F16", 1, 2},
    {"BF16", 1, 2},
    {"Q8_0", 32, 34},
    {"Q4_0", 32, 18},
    {"Q4_1", 32, 20},
    {"Q5_0", 32, 22},
    {"Q4_K", 256, 144},
    {"Q5_K", 256, 176},
    {"Q6_K", 256, 210},
    {"FP8", 32, 36},
    {"FP8", 128, 132},
    {"INT4", 32, 20},
    {"INT4", 128, 68},
    {"NF4", 64, 36},
}};

const Layout& layout(DType dtype) {
  return layouts[static_cast<size_t>(dtype)];
}

uint8_t byte_at(const std::byte* data, int at) {
  return std::to_integer<uint8_t>(data[at]);
}

uint16_t load16(const std::byte* data) {
  uint16_t bits = 0;
  std::memcpy(&bits, data, sizeof bits);
  return bits;
}

/// Without a branch on the value, so that a loop over it vectorizes: the exponent is rebased by a
/// multiplication, which also normalizes subnormals.
float half_to_float(uint16_t half) {
  const uint32_t magnitude = (half & 0x7fffU) << 13;
  const uint32_t rebased = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const uint32_t infinite = (half & 0x7c00U) == 0x7c00U ? 0x7f800000U : 0U;
  return std::bit_cast<float>(rebased | infinite | (half & 0x8000U) << 16);
}

float half_at(const std::byte* data) {
  return half_to_float(load16(data));
}

void q8_0_block(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(byte_at(block + 2, i)));
}

void q4_0_block(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 16; ++i) {
    const int pair = byte_at(block + 2, i);
    out[i] = d * static_cast<float>((pair & 15) - 8);
    out[i + 16] = d * static_cast<float>((pair >> 4) - 8);
  }
}

void q4_1_block(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  for (int i = 0; i < 16; ++i) {
    const int pair = byte_at(block + 4, i);
    out[i] = d * static_cast<float>(pair & 15) + m;
    out[i + 16] = d * static_cast<float>(pair >> 4) + m;
  }
}

void q5_0_block(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 16; ++i) {
    const int pair = byte_at(block + 6, i);
    const int low = byte_at(block + 2, i / 8) >> i % 8 & 1, high = byte_at(block + 4, i / 8) >> i % 8 & 1;
    out[i] = d * static_cast<float>(((pair & 15) | low << 4) - 16);
    out[i + 16] = d * static_cast<float>(((pair >> 4) | high << 4) - 16);
  }
}

/// Eight 6-bit scales and eight 6-bit minima in twelve bytes.
struct ScaleMin {
  int scale;
  int min;
};
ScaleMin scale_min(const std::byte* packed, int group) {
  if (group < 4) return {byte_at(packed, group) & 63, byte_at(packed, group + 4) & 63};
  const int low = byte_at(packed, group + 4);
  return {(low & 15) | (byte_at(packed, group - 4) >> 6) << 4, (low >> 4) | (byte_at(packed, group) >> 6)
                                                                                << 4};
}

void q4_k_block(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float dmin = half_at(block + 2);
  for (int group = 0; group < 8; ++group) {
    const auto [scale, min] = scale_min(block + 4, group);
    const float step = d * static_cast<float>(scale);
    const float floor = dmin * static_cast<float>(min);
    const std::byte* quants = block + 16 + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i)
      out[group * 32 + i] = step * static_cast<float>(byte_at(quants, i) >> shift & 15) - floor;
  }
}

void q5_k_block(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float dmin = half_at(block + 2);
  const std::byte* high = block + 16;
  for (int group = 0; group < 8; ++group) {
    const auto [scale, min] = scale_min(block + 4, group);
    const float step = d * static_cast<float>(scale);
    const float floor = dmin * static_cast<float>(min);
    const std::byte* quants = block + 48 + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      const int quant = (byte_at(quants, i) >> shift & 15) | (byte_at(high, i) >> group & 1) << 4;
      out[group * 32 + i] = step * static_cast<float>(quant) - floor;
    }
  }
}

void q6_k_block(const std::byte* block, float* out) {
  const float d = half_at(block + 208);
  for (int half = 0; half < 2; ++half) {
    const std::byte* low = block + half * 64;
    const std::byte* high = block + 128 + half * 32;
    const std::byte* scales = block + 192 + half * 8;
    for (int i = 0; i < 128; ++i) {
      const int lane = i % 32;
      const int quarter = i / 32;
      const int low_bits = byte_at(low, lane + quarter % 2 * 32) >> (quarter / 2 * 4) & 15;
      const int quant = (low_bits | (byte_at(high, lane) >> (quarter * 2) & 3) << 4) - 32;
      const float step = d * static_cast<float>(static_cast<int8_t>(byte_at(scales, i / 16)));
      out[half * 128 + i] = step * static_cast<float>(quant);
    }
  }
}

template <class Block>
void each_block(DType dtype, const std::byte* data, int64_t count, float* out, Block block) {
  const Layout& shape = layout(dtype);
  for (int64_t i = 0; i < count / shape.values; ++i) block(data + i * shape.bytes, out + i * shape.values);
}

}  // namespace

const char* dtype_name(DType dtype) {
  return layout(dtype).name;
}
int32_t block_values(DType dtype) {
  return layout(dtype).values;
}
int32_t block_bytes(DType dtype) {
  return layout(dtype).bytes;
}

void to_f32(DType dtype, const std::byte* data, int64_t count, float* out) {
  if (count % block_values(dtype) != 0)
    fail("{} values are not whole blocks of {}", count, dtype_name(dtype));
  switch (dtype) {
    case DType::f32:
      std::memcpy(out, data, static_cast<size_t>(count) * sizeof(float));
      return;
    case DType::f16:
      for (int64_t i = 0; i < count; ++i) out[i] = half_at(data + 2 * i);
      return;
    case DType::bf16:
      for (int64_t i = 0; i < count; ++i)
        out[i] = std::bit_cast<float>(static_cast<uint32_t>(load16(data + 2 * i)) << 16);
      return;
    case DType::q8_0:
      return each_block(dtype, data, count, out, q8_0_block);
    case DType::q4_0:
      return each_block(dtype, data, count, out, q4_0_block);
    case DType::q4_1:
      return each_block(dtype, data, count, out, q4_1_block);
    case DType::q5_0:
      return each_block(dtype, data, count, out, q5_0_block);
    case DType::q4_k:
      return each_block(dtype, data, count, out, q4_k_block);
    case DType::q5_k:
      return each_block(dtype, data, count, out, q5_k_block);
    case DType::q6_k:
      return each_block(dtype, data, count, out, q6_k_block);
    case DType::e4m3_32:
    case DType::e4m3_128:
      return each_block(dtype, data, count, out, [dtype](const std::byte* block, float* to) {
        e4m3_block(block, block_values(dtype), to);
      });
    case DType::int4_32:
    case DType::int4_128:
      return each_block(dtype, data, count, out, [dtype](const std::byte* block, float* to) {
        int4_block(block, block_values(dtype), to);
      });
    case DType::nf4:
      return each_block(dtype, data, count, out, nf4_block);
  }
  fail("to_f32: unknown type {}", static_cast<int>(dtype));
}

}  // namespace sheaf

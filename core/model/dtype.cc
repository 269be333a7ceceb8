// The block layouts are ggml's, but for those of core/model/scaled_blocks.h. Scales are fp16 and quants have
// at most 6 bits, so every product here is exact in fp32 and the result does not depend on whether the
// compiler fuses it with the addition that follows.
#include "core/model/dtype.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/base/error.h"
#include "core/model/e4m3.h"
#include "core/model/scaled_blocks.h"

namespace sheaf {
namespace {

uint8_t byte_at(const std::byte* data, int at) {
  return std::to_integer<uint8_t>(data[at]);
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
  return half_to_float(load_value<uint16_t>(data));
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

/// Blocks of Q4_K; or (Fifth) of Q5_K, which has a fifth bit of every value before the others.
template <bool Fifth>
void k_block(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float dmin = half_at(block + 2);
  const std::byte* high = block + 16;
  for (int group = 0; group < 8; ++group) {
    const auto [scale, min] = scale_min(block + 4, group);
    const float step = d * static_cast<float>(scale);
    const float floor = dmin * static_cast<float>(min);
    const std::byte* quants = block + (Fifth ? 48 : 16) + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      int quant = byte_at(quants, i) >> shift & 15;
      if constexpr (Fifth) quant |= (byte_at(high, i) >> group & 1) << 4;
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

/// Sixteen groups of 16 values, each with four bits of a scale and four of a minimum.
void q2_k_block(const std::byte* block, float* out) {
  const float d = half_at(block + 80);
  const float dmin = half_at(block + 82);
  for (int group = 0; group < 16; ++group) {
    const int packed = byte_at(block, group), in_half = group % 8;
    const float step = d * static_cast<float>(packed & 15);
    const float floor = dmin * static_cast<float>(packed >> 4);
    const std::byte* quants = block + 16 + group / 8 * 32 + in_half % 2 * 16;
    for (int i = 0; i < 16; ++i)
      out[group * 16 + i] = step * static_cast<float>(byte_at(quants, i) >> in_half / 2 * 2 & 3) - floor;
  }
}

/// Sixteen groups of 16 values, each with a scale of 6 bits; the third bits of all values come first.
void q3_k_block(const std::byte* block, float* out) {
  const float d = half_at(block + 108);
  const std::byte* scales = block + 96;
  for (int group = 0; group < 16; ++group) {
    const int low = byte_at(scales, group % 8) >> group / 8 * 4 & 15;
    const int high = byte_at(scales, 8 + group % 4) >> group / 4 * 2 & 3;
    const float step = d * static_cast<float>((low | high << 4) - 32);
    const int in_half = group % 8, first = in_half % 2 * 16, row = in_half / 2;
    const std::byte* quants = block + 32 + group / 8 * 32 + first;
    for (int i = 0; i < 16; ++i) {
      const int third = byte_at(block, first + i) >> (group / 8 * 4 + row) & 1;
      const int quant = (byte_at(quants, i) >> row * 2 & 3) | third << 2;
      out[group * 16 + i] = step * static_cast<float>(quant - 4);
    }
  }
}

/// What four bits of IQ4_NL and IQ4_XS stand for.
constexpr float kIq4[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/// Sixteen bytes of four-bit codes, the first 16 of their values in the low bits.
void decode_codes(const std::byte* codes, const float* values, float step, float* out) {
  for (int i = 0; i < 16; ++i) {
    const int pair = byte_at(codes, i);
    out[i] = step * values[pair & 15];
    out[i + 16] = step * values[pair >> 4];
  }
}

void iq4_nl_block(const std::byte* block, float* out) {
  decode_codes(block + 2, kIq4, half_at(block), out);
}

void iq4_xs_block(const std::byte* block, float* out) {
  const float d = half_at(block);
  const int high = load_value<uint16_t>(block + 2);
  for (int group = 0; group < 8; ++group) {
    const int low = byte_at(block + 4, group / 2) >> group % 2 * 4 & 15;
    const int scale = (low | (high >> group * 2 & 3) << 4) - 32;
    decode_codes(block + 8 + group * 16, kIq4, d * static_cast<float>(scale), out + group * 32);
  }
}

/// E2M1 codes with a power of two before them, 2^(byte - 127): exact also as bf16. 255 is NaN.
void mxfp4_block(const std::byte* block, float* out) {
  constexpr float kHalves[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const uint32_t scale = byte_at(block, 0);
  // Half of the scale, which is subnormal for the two smallest.
  uint32_t half = scale < 2 ? 0x00200000U << scale : (scale - 1) << 23;
  if (scale == 255) half = 0x7fc00000U;
  decode_codes(block + 1, kHalves, std::bit_cast<float>(half), out);
}

// Blocks of core/model/scaled_blocks.h.

template <int Values>
void e4m3_block(const std::byte* block, float* out) {
  const auto scale = load_value<float>(block);
  for (int i = 0; i < Values; ++i) out[i] = scale * from_e4m3(byte_at(block + kScaleBytes, i));
}

template <int Values>
void int4_block(const std::byte* block, float* out) {
  const auto bits = load_value<uint32_t>(block);
  const auto scale = std::bit_cast<float>(bits & ~kZeroPointBits);
  const auto zero = static_cast<int>(bits & kZeroPointBits);
  for (int i = 0; i < Values / 2; ++i) {
    const int pair = byte_at(block + kScaleBytes, i);
    out[2 * i] = scale * static_cast<float>((pair & 15) - zero);
    out[2 * i + 1] = scale * static_cast<float>((pair >> 4) - zero);
  }
}

void nf4_block(const std::byte* block, float* out) {
  const auto scale = load_value<float>(block);
  for (int i = 0; i < 32; ++i) {
    const int pair = byte_at(block + kScaleBytes, i);
    out[2 * i] = scale * kNf4.values[pair & 15];
    out[2 * i + 1] = scale * kNf4.values[pair >> 4];
  }
}

void f32_values(const std::byte* data, int64_t count, float* out) {
  std::memcpy(out, data, static_cast<size_t>(count) * sizeof(float));
}
void f16_values(const std::byte* data, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = half_at(data + 2 * i);
}
void bf16_values(const std::byte* data, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = std::bit_cast<float>(static_cast<uint32_t>(load_value<uint16_t>(data + 2 * i)) << 16);
}

template <auto Block, int Values, int Bytes>
void blocks(const std::byte* data, int64_t count, float* out) {
  for (int64_t i = 0; i < count / Values; ++i) Block(data + i * Bytes, out + i * Values);
}

/// The first are those of DType, in its order.
constexpr TensorType kTypes[] = {
    {"F32", 1, 4, 0, true, DType::f32, f32_values},
    {"F16", 1, 2, 1, true, DType::f16, f16_values},
    {"Q4_0", 32, 18, 2, false, DType::q4_0, blocks<q4_0_block, 32, 18>, 1},
    {"Q4_1", 32, 20, 3, false, DType::q4_1, blocks<q4_1_block, 32, 20>, 2},
    {"Q5_0", 32, 22, 6, false, DType::q5_0, blocks<q5_0_block, 32, 22>, 1},
    {"Q8_0", 32, 34, 8, false, DType::q8_0, blocks<q8_0_block, 32, 34>, 1},
    {"Q4_K", 256, 144, 12, false, DType::q4_k, blocks<k_block<false>, 256, 144>, 2},
    {"Q5_K", 256, 176, 13, false, DType::q5_k, blocks<k_block<true>, 256, 176>, 2},
    {"Q6_K", 256, 210, 14, false, DType::q6_k, blocks<q6_k_block, 256, 210>, 1, 208},
    {"BF16", 1, 2, 30, true, DType::bf16, bf16_values},
    {"FP8", 32, 36, -1, false, DType::e4m3_32, blocks<e4m3_block<32>, 32, 36>},
    {"FP8", 128, 132, -1, false, DType::e4m3_128, blocks<e4m3_block<128>, 128, 132>},
    {"INT4", 32, 20, -1, false, DType::int4_32, blocks<int4_block<32>, 32, 20>},
    {"INT4", 128, 68, -1, false, DType::int4_128, blocks<int4_block<128>, 128, 68>},
    {"NF4", 64, 36, -1, false, DType::nf4, blocks<nf4_block, 64, 36>},
    {"MXFP4", 32, 17, 39, false, DType::mxfp4, blocks<mxfp4_block, 32, 17>},
    {"Q2_K", 256, 84, 10, false, DType::q2_k, blocks<q2_k_block, 256, 84>, 2, 80},
    {"Q3_K", 256, 110, 11, false, DType::q3_k, blocks<q3_k_block, 256, 110>, 1, 108},
    {"IQ4_NL", 32, 18, 20, false, DType::iq4_nl, blocks<iq4_nl_block, 32, 18>, 1},
    {"IQ4_XS", 256, 136, 23, false, DType::iq4_xs, blocks<iq4_xs_block, 256, 136>, 1},
    {"Q5_1", 32, 24, 7},
    {"Q8_1", 32, 36, 9},
    {"Q8_K", 256, 292, 15},
    {"IQ2_XXS", 256, 66, 16},
    {"IQ2_XS", 256, 74, 17},
    {"IQ3_XXS", 256, 98, 18},
    {"IQ1_S", 256, 50, 19},
    {"IQ3_S", 256, 110, 21},
    {"IQ2_S", 256, 82, 22},
    {"I8", 1, 1, 24, true},
    {"I16", 1, 2, 25, true},
    {"I32", 1, 4, 26, true},
    {"I64", 1, 8, 27, true},
    {"F64", 1, 8, 28, true},
    {"IQ1_M", 256, 56, 29},
    {"Q4_0_4_4", 32, 18, 31},
    {"Q4_0_4_8", 32, 18, 32},
    {"Q4_0_8_8", 32, 18, 33},
    {"TQ1_0", 256, 54, 34},
    {"TQ2_0", 256, 66, 35},
    {"F8_E4M3", 1, 1, -1, true},
    {"F8_E5M2", 1, 1, -1, true},
    {"U64", 1, 8, -1, true},
    {"U32", 1, 4, -1, true},
    {"U16", 1, 2, -1, true},
    {"U8", 1, 1, -1, true},
    {"BOOL", 1, 1, -1, true},
};

template <class Is>
const TensorType* find_type(Is is) {
  const auto* found = std::ranges::find_if(kTypes, is);
  return found == std::end(kTypes) ? nullptr : found;
}

/// Without a branch on the value, so that a loop over it vectorizes.
uint16_t rounded(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t nearest = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? 0x7fffU : nearest);
}

void round_all(const float* values, int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = rounded(values[i]);
}

/// bf16 has nothing to round, but every NaN is to look the same.
void copy_bf16(const std::byte* data, int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = load_value<uint16_t>(data + 2 * i);
    out[i] = (bits & 0x7fffU) > 0x7f80U ? uint16_t{0x7fff} : bits;
  }
}

}  // namespace

const TensorType& tensor_type(DType dtype) {
  return kTypes[static_cast<size_t>(dtype)];
}

const TensorType* find_ggml_type(uint32_t number) {
  return find_type([&](const TensorType& type) { return int64_t{type.ggml} == int64_t{number}; });
}

const TensorType* find_safetensors_type(std::string_view name) {
  return find_type([&](const TensorType& type) { return type.safetensors && type.name == name; });
}

std::string readable_types(bool gguf) {
  std::string list;
  for (const TensorType& type : kTypes)
    if (type.dtype && (gguf ? type.ggml >= 0 : type.safetensors))
      list += (list.empty() ? "" : ", ") + std::string(type.name);
  return list;
}

void to_f32(DType dtype, const std::byte* data, int64_t count, float* out) {
  const TensorType& type = tensor_type(dtype);
  if (count % type.block_values != 0) fail("{} values are not whole blocks of {}", count, type.name);
  type.to_f32(data, count, out);
}

void to_bf16(DType dtype, const std::byte* data, int64_t count, uint16_t* out) {
  if (dtype == DType::bf16) return copy_bf16(data, count, out);
  constexpr int64_t kPiece = 2048;  // whole blocks of every type, as fp32 in the first cache
  std::array<float, kPiece> piece;
  for (int64_t done = 0; done < count; done += kPiece) {
    const int64_t values = std::min(kPiece, count - done);
    to_f32(dtype, data + done / block_values(dtype) * block_bytes(dtype), values, piece.data());
    round_all(piece.data(), values, out + done);
  }
}

}  // namespace sheaf

// The loops have no branch on a value, so that they vectorize: they run at the speed of memory.
#include <algorithm>

#include "core/model/dtype.h"
#include "core/model/scaled_blocks.h"

namespace sheaf {
namespace {

/// Whether no word has an exponent of `limit` or above; `mask` covers the exponent. What is added carries
/// into the highest bit from there on: three operations that every vector unit has, where a comparison would
/// be widened and narrowed again.
template <class Word>
bool exponents_below(const std::byte* data, int64_t count, Word mask, Word limit) {
  constexpr auto kHighest = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
  const auto carry = static_cast<Word>(kHighest - limit);
  Word reached = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto exponent = static_cast<Word>(load_value<Word>(data + i * int64_t{sizeof(Word)}) & mask);
    reached = static_cast<Word>(reached | static_cast<Word>(exponent + carry));
  }
  return (reached & kHighest) == 0;
}

constexpr uint16_t kHalfExponent = 0x7c00, kBf16Exponent = 0x7f80;
constexpr uint32_t kFloatExponent = 0x7f800000;
constexpr uint32_t kMostFloat = 0x7f000000;  // 2^127: what is above may round up to infinity in bf16
constexpr uint32_t kMostScale = 0x78000000;  // 2^113, times any value of a block below 2^127

/// Whether the fp16 scales of blocks are finite.
bool half_scales(const TensorType& type, const std::byte* data, int64_t count) {
  const int64_t bytes = type.block_bytes, blocks = count / type.block_values;
  const int64_t at = type.scales_at, halves = type.half_scales;
  uint16_t reached = 0;
  for (int64_t i = 0; i < blocks; ++i)
    for (int64_t half = 0; half < halves; ++half)
      reached |= (load_value<uint16_t>(data + i * bytes + at + 2 * half) & kHalfExponent) == kHalfExponent;
  return reached == 0;
}

/// Whether the fp32 scales before blocks are small enough.
bool float_scales(DType dtype, const std::byte* data, int64_t count) {
  const int64_t bytes = block_bytes(dtype), blocks = count / block_values(dtype);
  uint32_t reached = 0;
  for (int64_t i = 0; i < blocks; ++i)
    reached |= (load_value<uint32_t>(data + i * bytes) & kFloatExponent) >= kMostScale;
  return reached == 0;
}

/// Whether the powers of two of MXFP4 are so small that no value overflows: 6 · 2^(252 - 127) does not.
bool small_powers(const std::byte* data, int64_t count) {
  constexpr int64_t kBytes = 17;
  uint8_t most = 0;
  for (int64_t i = 0; i < count / 32; ++i) most = std::max(most, std::to_integer<uint8_t>(data[i * kBytes]));
  return most <= 252;
}

bool e4m3_values(DType dtype, const std::byte* data, int64_t count) {
  const int64_t bytes = block_bytes(dtype), values = block_values(dtype), blocks = count / values;
  uint8_t reached = 0;
  for (int64_t i = 0; i < blocks; ++i) {
    const std::byte* block = data + i * bytes + kScaleBytes;
    for (int64_t v = 0; v < values; ++v) reached |= (std::to_integer<uint8_t>(block[v]) & 0x7f) == 0x7f;
  }
  return reached == 0;
}

}  // namespace

bool all_finite(const float* values, int64_t count) {
  return exponents_below<uint32_t>(reinterpret_cast<const std::byte*>(values), count, kFloatExponent,
                                   kFloatExponent);
}

bool all_finite(const uint16_t* bits, int64_t count) {
  return exponents_below<uint16_t>(reinterpret_cast<const std::byte*>(bits), count, kBf16Exponent,
                                   kBf16Exponent);
}

bool surely_finite(DType dtype, const std::byte* data, int64_t count) {
  switch (dtype) {
    case DType::f32:
      return exponents_below<uint32_t>(data, count, kFloatExponent, kMostFloat);
    case DType::f16:
      return exponents_below<uint16_t>(data, count, kHalfExponent, kHalfExponent);
    case DType::bf16:
      return exponents_below<uint16_t>(data, count, kBf16Exponent, kBf16Exponent);
    case DType::mxfp4:
      return small_powers(data, count);
    default:
      break;
  }
  if (const TensorType& type = tensor_type(dtype); type.half_scales > 0)
    return half_scales(type, data, count);
  return float_scales(dtype, data, count) && (!is_e4m3(dtype) || e4m3_values(dtype, data, count));
}

}  // namespace sheaf

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "core/model/model.h"

namespace sheaf {
namespace {

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
    uint16_t bits = 0;
    std::memcpy(&bits, data + 2 * i, sizeof bits);
    out[i] = (bits & 0x7fffU) > 0x7f80U ? uint16_t{0x7fff} : bits;
  }
}

}  // namespace

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

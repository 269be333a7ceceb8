#include "core/model/e4m3.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace sheaf {
namespace {

constexpr float kLargest = 448, kSmallestNormal = 0x1p-6f;
constexpr float kLeast = 1e-20f;  // of a row's largest value, so that its inverse is a number

float decode(int bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return bits < 128 ? magnitude : -magnitude;
}

}  // namespace

float from_e4m3(uint8_t bits) {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> all{};
    for (int i = 0; i < 256; ++i) all[static_cast<size_t>(i)] = decode(i);
    return all;
  }();
  return values[bits];
}

uint8_t to_e4m3(float value) {
  if (std::isnan(value)) return 0x7f;
  const uint32_t sign = std::bit_cast<uint32_t>(value) >> 24 & 0x80;
  const float magnitude = std::min(std::fabs(value), kLargest);
  uint32_t bits = 0;
  if (magnitude < kSmallestNormal) {
    // Adding 2^14 leaves a float whose last bit is 2^-9.
    bits = std::bit_cast<uint32_t>(magnitude + 0x1p14f) - std::bit_cast<uint32_t>(0x1p14f);
  } else {
    const uint32_t wide = std::bit_cast<uint32_t>(magnitude);
    bits = ((wide + 0x7ffff + (wide >> 20 & 1)) >> 20) - ((127 - 7) << 3);
  }
  return static_cast<uint8_t>(sign | bits);
}

float to_e4m3(std::span<const float> row, uint8_t* out, bool by_power) {
  float most = 0;
  for (const float value : row) most = std::max(most, std::fabs(value));
  if (by_power && most > 0) {
    int exponent = 0;
    std::frexp(most, &exponent);
    most = std::ldexp(1.75f, exponent - 1);
  }
  most = std::max(most, kLeast);
  const float inverse = kLargest / most;
  for (size_t i = 0; i < row.size(); ++i) out[i] = to_e4m3(row[i] * inverse);
  return most / kLargest;
}

}  // namespace sheaf

#pragma once
#include <cstdint>
#include <span>

namespace sheaf {

// E4M3: a sign, four bits of exponent, three of mantissa; 448 is the largest, 2^-9 the smallest above zero,
// 0x7f and 0xff are not numbers, and there are no infinities.

float from_e4m3(uint8_t bits);
/// The nearest, the even one of two; what is larger than 448 becomes 448, a NaN 0x7f.
uint8_t to_e4m3(float value);

/// The scale by which `out` [row.size()] must be multiplied to get the row back: its largest absolute value
/// becomes 448; or with `by_power` a power of two, as suits MXFP4: then a row stays as it is unless its
/// smallest digit is less than its largest power of two divided by 2^17.
float to_e4m3(std::span<const float> row, uint8_t* out, bool by_power = false);

}  // namespace sheaf

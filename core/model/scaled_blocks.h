#pragma once
#include <cstdint>

namespace sheaf {

// Blocks of values with their scale before them, in fp32:
// - e4m3: a byte each. Blocks of 32 or of 128 values.
// - int4: four bits each, the first in the low bits. Blocks of 32 or of 128 values. The scale comes from 16
//   bits, so at least 13 bits of its mantissa are zero: the last five of them are the zero point, which is
//   subtracted from the values.
// - nf4: four bits each, which name one of sixteen values. Blocks of 64.

constexpr int64_t kScaleBytes = 4;
constexpr uint32_t kZeroPointBits = 31;

/// What four bits of nf4 stand for: quantiles of a normal distribution, as in the QLoRA paper.
struct Nf4 {
  float values[16];
};
constexpr Nf4 kNf4{{
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
}};

}  // namespace sheaf

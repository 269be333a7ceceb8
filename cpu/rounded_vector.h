#pragma once
#include <cstddef>
#include <cstdint>

namespace sheaf {

/// A vector in whole numbers of 8 bits: its scale (fp32), then the numbers, filled up with zeros to a
/// multiple of 16. A number x becomes round(x / scale); scale = largest absolute value / 127, or NaN or
/// infinite where the vector has one.
int64_t rounded_bytes(int64_t size);
void round_vector(const float* x, int64_t size, std::byte* to);
void expand_vector(const std::byte* from, int64_t size, float* x);

}  // namespace sheaf

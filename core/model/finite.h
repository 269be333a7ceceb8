#pragma once
#include <cstddef>
#include <cstdint>

#include "core/model/dtype.h"

namespace sheaf {

// A weight that is NaN or infinite, as a training that diverged leaves it, would give answers that mean
// nothing. Matrix looks at every value that leaves it with these.

bool all_finite(const float* values, int64_t count);
/// Whether all of these bf16 values, given as their bits, are finite.
bool all_finite(const uint16_t* bits, int64_t count);

/// Whether `count` values (whole blocks), stored as `dtype`, are sure to be finite in fp32 and in bf16. It
/// looks at scales and at bytes that may be NaN, not at every product of the two: false also where a scale is
/// so large that a product might not fit.
bool surely_finite(DType dtype, const std::byte* data, int64_t count);

}  // namespace sheaf

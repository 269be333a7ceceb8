#pragma once
#include <cstdint>

namespace sheaf {

/// Columns of a packed panel; every vector width divides it, and all sums over it use this many lanes, so
/// that every instruction set with fused multiply-add gives the same bits.
inline constexpr int64_t kPanel = 16;

constexpr int64_t round_up_to_panel(int64_t count) {
  return (count + kPanel - 1) / kPanel * kPanel;
}

}  // namespace sheaf

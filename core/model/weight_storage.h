#pragma once
#include <cstdint>

namespace sheaf {

/// How weights lie in a GPU's memory.
enum class WeightStorage : uint8_t { automatic, expanded, packed };

}  // namespace sheaf

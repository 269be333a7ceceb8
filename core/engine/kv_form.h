#pragma once
#include <cstdint>

namespace sheaf {

/// How keys and values leave a pool, and come back.
enum class KvForm : uint8_t {
  computed,  ///< as they lie there: they come back the same to the bit
  /// In whole numbers of 8 bits, with a scale for the key and one for the value of each head: the largest
  /// absolute value / 127. A number comes back within half a scale.
  rounded,
};

}  // namespace sheaf

#pragma once
#include <cstdint>

#include "core/model/model.h"

namespace sheaf {

/// Random blocks, each of values that are finite in fp32 and in bf16. `mask` takes bits out of every two
/// bytes.
template <class Random>
void fill_with_finite_blocks(DType dtype, std::byte* data, int64_t blocks, Random& random,
                             uint32_t mask = 0xffff) {
  for (int64_t i = 0; i < blocks; ++i) {
    std::byte* block = data + i * block_bytes(dtype);
    do {
      for (int32_t at = 0; at < block_bytes(dtype); ++at)
        block[at] = static_cast<std::byte>(random() & (at % 2 == 0 ? mask : mask >> 8) & 0xff);
    } while (!surely_finite(dtype, block, block_values(dtype)));
  }
}

}  // namespace sheaf

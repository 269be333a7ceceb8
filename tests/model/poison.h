#pragma once
#include <string>
#include <vector>

#include "core/model/model.h"
#include "tests/model/gguf_bytes.h"

namespace sheaf {

/// Bytes that make a value of a type NaN, infinite or minus infinite, and where in a block they go.
struct Poison {
  int64_t at;
  std::string bytes;
};

inline std::vector<Poison> half_poisons(int64_t at) {
  return {{at, raw<uint16_t>(0x7e00)}, {at, raw<uint16_t>(0x7c00)}, {at, raw<uint16_t>(0xfc00)}};
}

inline std::vector<Poison> poisons(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return {{0, raw<uint32_t>(0x7fc00000)}, {0, raw<uint32_t>(0x7f800000)}, {0, raw<uint32_t>(0xff800000)}};
    case DType::bf16:
      return {{0, raw<uint16_t>(0x7fc0)}, {0, raw<uint16_t>(0x7f80)}, {0, raw<uint16_t>(0xff80)}};
    case DType::q6_k:
      return half_poisons(208);
    case DType::q2_k: {
      std::vector<Poison> both = half_poisons(80);
      for (const Poison& poison : half_poisons(82)) both.push_back(poison);
      return both;
    }
    case DType::q3_k:
      return half_poisons(108);
    case DType::mxfp4:
      return {{0, "\xff"}};
    case DType::q4_1:
    case DType::q4_k:
    case DType::q5_k: {
      std::vector<Poison> both = half_poisons(0);
      for (const Poison& poison : half_poisons(2)) both.push_back(poison);
      return both;
    }
    default:
      return half_poisons(0);
  }
}

/// The first, the last and a block between of a tensor.
inline std::vector<int64_t> some_blocks(int64_t blocks, uint32_t random) {
  return {0, blocks - 1, static_cast<int64_t>(random % static_cast<uint32_t>(blocks))};
}

}  // namespace sheaf

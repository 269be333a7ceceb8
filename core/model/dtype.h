#pragma once
#include <cstdint>

namespace sheaf {

/// How the values of a matrix are stored. Those after q6_k are blocks that sheaf itself puts together out of
/// checkpoints whose scales lie apart (core/model/scaled_blocks.h).
enum class DType : uint8_t {
  f32,
  f16,
  bf16,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q4_k,
  q5_k,
  q6_k,
  e4m3_32,
  e4m3_128,
  int4_32,
  int4_128,
  nf4
};

constexpr bool is_e4m3(DType dtype) {
  return dtype == DType::e4m3_32 || dtype == DType::e4m3_128;
}

}  // namespace sheaf

#pragma once
#include <cstdint>

namespace sheaf {

/// How the values of a matrix are stored.
enum class DType : uint8_t { f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q4_k, q5_k, q6_k };

}  // namespace sheaf

#pragma once
#include <cstdint>

// Nothing of the standard library beyond this: kernels of several instruction sets include it.
namespace sheaf {

/// What the gate of an MLP goes through: down(activation(gate) · up).
enum class Activation : uint8_t {
  silu,
  gelu_tanh,  ///< GELU by its tanh formula (Gemma)
  clamped,    ///< g · sigmoid(1.702 · g) · (up + 1), with g at most 7 and up from -7 to 7 (gpt-oss)
};
constexpr float kGateClamp = 7;       ///< bound of Activation::clamped
constexpr float kGateSlope = 1.702f;  ///< factor in its sigmoid

}  // namespace sheaf

#pragma once
// What the gate of an MLP goes through, on the device.
#include "core/model/config.h"

namespace sheaf::cuda {

/// An activation is gate × sigmoid(this): GELU's tanh formula is one too.
template <Activation activation>
__device__ float sigmoid_input(float gate) {
  if constexpr (activation == Activation::silu) return gate;
  if constexpr (activation == Activation::clamped) return kGateSlope * gate;
  return 1.5957691f * (gate + 0.044715f * gate * gate * gate);  // 2 sqrt(2 / π)
}
template <Activation activation>
__device__ float activated(float gate) {
  return gate / (1.0f + __expf(-sigmoid_input<activation>(gate)));
}

/// Brings gate and up into the bounds of Activation::clamped, and adds one to up; others have none. NaN
/// stays: fminf() would make a number of it.
template <Activation activation>
__device__ void bound(float& gate, float& up) {
  if constexpr (activation == Activation::clamped) {
    gate = gate > kGateClamp ? kGateClamp : gate;
    up = (up > kGateClamp ? kGateClamp : up < -kGateClamp ? -kGateClamp : up) + 1.0f;
  }
}
/// activation(gate) × up, within bounds.
template <Activation activation>
__device__ float gated(float gate, float up) {
  bound<activation>(gate, up);
  return activated<activation>(gate) * up;
}

}  // namespace sheaf::cuda

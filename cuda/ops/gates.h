#pragma once
// What the gate of an MLP goes through, on the device.
#include "core/model/config.h"

namespace sheaf::cuda {

/// An activation is gate × sigmoid(this): GELU's tanh formula is one too.
template <Activation activation>
__device__ float sigmoid_input(float gate) {
  if constexpr (activation == Activation::silu) return gate;
  return 1.5957691f * (gate + 0.044715f * gate * gate * gate);  // 2 sqrt(2 / π)
}
template <Activation activation>
__device__ float activated(float gate) {
  return gate / (1.0f + __expf(-sigmoid_input<activation>(gate)));
}

}  // namespace sheaf::cuda

#pragma once
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/model/config.h"

namespace sheaf::test {

/// An activation by its formula.
inline double activated(Activation activation, double gate) {
  if (activation == Activation::silu) return gate / (1 + std::exp(-gate));
  if (activation == Activation::clamped) return gate / (1 + std::exp(-1.702 * gate));
  return gate / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (gate + 0.044715 * gate * gate * gate)));
}
/// What an MLP makes of gate and up.
inline double gated(Activation activation, double gate, double up) {
  if (activation == Activation::clamped)
    return activated(activation, std::min(gate, 7.0)) * (std::clamp(up, -7.0, 7.0) + 1);
  return activated(activation, gate) * up;
}

}  // namespace sheaf::test

#pragma once
#include <cmath>
#include <numbers>

#include "core/model/config.h"

namespace sheaf::test {

/// An activation by its formula.
inline double activated(Activation activation, double gate) {
  if (activation == Activation::silu) return gate / (1 + std::exp(-gate));
  return gate / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (gate + 0.044715 * gate * gate * gate)));
}

}  // namespace sheaf::test

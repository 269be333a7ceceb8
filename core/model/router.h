#pragma once
#include <cstdint>
#include <span>

#include "core/model/config.h"

namespace sheaf {

/// An expert that a token goes through.
struct Choice {
  int32_t expert = 0;
  float weight = 0;  ///< of what it gives
};

/// The experts of a token, the one with the highest score first. `logits` [experts] become scores; `bias` is
/// as long, or empty; it is part of the logits, or for the choice alone. `chosen` has room for
/// Experts::per_token. A token whose logits are not finite gets weights that are NaN.
void route(const Experts& experts, std::span<float> logits, std::span<const float> bias,
           std::span<Choice> chosen);

}  // namespace sheaf

#pragma once
#include <span>

#include "core/engine/step_batch.h"

namespace sheaf {

/// Chooses a token from one row of logits: the definition that every backend follows. A token outside
/// `allowed` (when not empty) is never chosen; NaN logits count as minus infinity.
Picked pick_token(std::span<const float> logits, const Pick& pick, std::span<const TokenId> allowed);

}  // namespace sheaf

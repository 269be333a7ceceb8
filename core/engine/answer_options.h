#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "core/engine/engine.h"

namespace sheaf {

// Several answers to one question, of which the likeliest is taken: slots that stand side by side.

/// The end of the options of the question whose first one is `first`.
size_t options_end(const std::vector<Slot>& slots, size_t first);

/// Whether the slot's only answer is the null that it watches.
bool is_null_option(const Slot& slot);

/// What options are compared by: the log-probability, that of null with its bias.
double option_score(const Slot& slot, const Answer& answer);

/// The likeliest of the options, the first on a tie, with what the others say of null and the best
/// alternative. An option that was dropped counts with the log-probability of its tokens so far, which is an
/// upper bound.
Answer take_likeliest(std::span<const Slot> slots, std::span<Answer> answers);

}  // namespace sheaf

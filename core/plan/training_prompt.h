#pragma once
#include <optional>

#include "core/engine/stop_rules.h"
#include "core/task/task.h"

namespace sheaf {

/// A stack with its answers, as a trainer needs it. Segments stand one after the other.
struct TrainingPrompt {
  Tokens tokens;
  std::vector<int32_t> positions;
  std::vector<int32_t> targets;            ///< per token, the one to predict after it; -1: no loss
  std::vector<int32_t> segment_starts;     ///< per segment, the index of its first token
  std::vector<std::vector<int32_t>> sees;  ///< per segment, the segments it sees wholly
  std::vector<std::vector<int32_t>>
      abreast;                   ///< per segment, the segments it sees up to the looking token's own index
  std::vector<int32_t> records;  ///< records that have an answer in the prompt
  int32_t answers = 0;
};

/// `wanted` gives the answer of a slot, or nothing: then nothing is learned from it, and what only it needs
/// is left out. A value's last token is learned but never seen, as in decoding. Nothing where no slot has an
/// answer.
std::optional<TrainingPrompt> make_training_prompt(
    const Stack& stack, const StopRules& rules,
    const std::function<std::optional<Tokens>(const Slot&)>& wanted);

/// The prompt of a stack and those of its later rounds about entries, which are made of the wanted answers as
/// decoding makes them of decoded ones. `wanted`: of a slot of the stack, null where it has none.
std::vector<TrainingPrompt> make_training_prompts(
    const Stack& stack, const StopRules& rules,
    const std::function<const WantedAnswer*(const Slot&)>& wanted);

}  // namespace sheaf

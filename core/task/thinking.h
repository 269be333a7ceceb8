#pragma once
#include "core/task/task.h"

namespace sheaf {

/// How the answers of a job think first; null where model.reasoning is none. Refuses a chat template without
/// a switch and a tokenizer that has no token for the end of a thought.
std::shared_ptr<const Thinking> make_thinking(const TaskContext& context);

/// An answer that thought first, in its two parts.
struct ThoughtAnswer {
  std::span<const TokenId> thought, answer;
  bool cut = false;  ///< the thought reached its budget
};
ThoughtAnswer split_thought(const Thinking& thinking, std::span<const TokenId> tokens);

}  // namespace sheaf

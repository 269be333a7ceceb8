#include "core/task/thinking.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/task/prompt_text.h"

namespace sheaf {

std::shared_ptr<const Thinking> make_thinking(const TaskContext& context) {
  if (context.job.model.reasoning == Reasoning::none) return nullptr;
  const ChatThinking& think = context.chat.think;
  if (think.turn.empty())
    refuse(
        "model.reasoning: {} does not work with the chat template {}, which has no switch for thoughts; use "
        "none",
        word_of(context.job.model.reasoning), context.chat.name);
  const std::optional<TokenId> end = context.tokenizer.find(think.end);
  if (!end) refuse("model.reasoning: {} has no token \"{}\"; use none", tokenizer_name(context), think.end);
  auto thinking = std::make_shared<Thinking>();
  thinking->budget = context.job.model.reasoning_tokens;
  thinking->end = *end;
  thinking->close = encode_part(context.tokenizer, {{think.close, true}});
  thinking->cut = encode_part(context.tokenizer, {{think.cut, true}});
  if (thinking->close.empty() || thinking->close.front() != *end ||
      std::ranges::find(thinking->cut, *end) == thinking->cut.end())
    refuse("model.reasoning: {} does not cut \"{}\" at the end of a thought; use none",
           tokenizer_name(context), think.close);
  return thinking;
}

ThoughtAnswer split_thought(const Thinking& thinking, std::span<const TokenId> tokens) {
  const auto end = static_cast<size_t>(std::ranges::find(tokens, thinking.end) - tokens.begin());
  if (end == tokens.size()) return {{}, tokens};
  const auto budget = static_cast<size_t>(thinking.budget);
  return {tokens.first(std::min(end, budget)),
          tokens.subspan(std::min(end + thinking.close.size(), tokens.size())), end >= budget};
}

}  // namespace sheaf

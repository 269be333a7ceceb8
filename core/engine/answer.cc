#include "core/engine/answer.h"

#include <algorithm>

namespace sheaf {

const char* ending_name(Ending ending) {
  constexpr const char* kNames[] = {"end of text", "delimiter", "chosen", "length", "searched"};
  return kNames[static_cast<size_t>(ending)];
}

void join_rounds(Stack& stack, std::vector<Answer>& answers) {
  while (stack.earlier) {
    EarlierRound before = *stack.earlier;
    for (size_t i = 0, end = 0; i < stack.slots.size(); i = end) {
      end = options_end(stack.slots, i);
      const Slot& slot = stack.slots[i];
      before.answers[static_cast<size_t>(slot.parent)].inner.push_back(
          {slot.entry, slot.question,
           take_likeliest(std::span(stack.slots).subspan(i, end - i),
                          std::span(answers).subspan(i, end - i))});
    }
    stack = std::move(before.stack);
    answers = std::move(before.answers);
  }
}

size_t options_end(const std::vector<Slot>& slots, size_t first) {
  size_t end = first + 1;
  while (end < slots.size() && slots[end].option > 0) ++end;
  return end;
}

bool is_null_option(const Slot& slot) {
  const AnswerTrie* list = slot.watch && slot.allowed ? slot.allowed->list() : nullptr;
  return list && list->answers().size() == 1 && list->answers()[0] == slot.watch->null;
}

double option_score(const Slot& slot, const Answer& answer) {
  return answer.logprob + (is_null_option(slot) ? static_cast<double>(slot.watch->bias) : 0);
}

Answer take_likeliest(std::span<const Slot> slots, std::span<Answer> answers) {
  if (slots.size() == 1) return std::move(answers[0]);
  size_t best = 0;
  for (size_t i = 1; i < slots.size(); ++i)
    if (option_score(slots[i], answers[i]) > option_score(slots[best], answers[best])) best = i;
  Answer taken = std::move(answers[best]);
  if (!slots[best].watch) return taken;
  for (size_t i = 0; i < slots.size(); ++i) {
    const double logprob = i == best ? taken.logprob : answers[i].logprob;
    if (is_null_option(slots[i]))
      taken.null_logprob = logprob;
    else if (i != best)
      taken.alternative = std::max(taken.alternative, logprob);
  }
  taken.null_margin = (is_null_option(slots[best]) ? taken.alternative : taken.logprob) - taken.null_logprob;
  return taken;
}

}  // namespace sheaf

#include "core/task/parts.h"

namespace sheaf {

ItemParts ask_together(ItemParts item) {
  if (item.own_questions.size() < 2) return item;
  QuestionParts all = item.own_questions[0];
  for (size_t i = 1; i < item.own_questions.size(); ++i) {
    append(all.tokens, item.own_questions[i].tokens);
    all.max_tokens += item.own_questions[i].max_tokens;
  }
  all.allowed = nullptr;
  item.own_questions = {std::move(all)};
  return item;
}

}  // namespace sheaf

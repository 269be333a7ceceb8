#include "core/methods/builder.h"

namespace sheaf {

void build_separate(std::span<const ItemParts> items, std::vector<Stack>& out) {
  for (const ItemParts& item : items) {
    for (size_t q = 0; q < item.questions().size(); ++q) {
      Stack& stack = out.emplace_back();
      Segment prompt;
      prompt.role = Role::question;
      for (const Tokens* part :
           {&item.bin->instruction, &item.document, &item.bin->opening, &item.questions()[q].tokens})
        append(prompt.tokens, *part);
      Slot slot = make_slot(item, q);
      slot.prompt = slot.answer = stack.add(std::move(prompt));
      stack.slots.push_back(std::move(slot));
    }
  }
}

}  // namespace sheaf

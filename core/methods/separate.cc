#include "core/methods/builder.h"

namespace sheaf {

void build_separate(std::span<const RecordParts> records, std::vector<Stack>& out) {
  for (const RecordParts& record : records) {
    for (size_t q = 0; q < record.questions().size(); ++q) {
      if (!record.asks(q)) continue;
      Stack& stack = out.emplace_back();
      Segment prompt;
      prompt.role = Role::question;
      for (const Tokens* part : {&record.bin->instruction, &record.head, &record.document,
                                 &record.bin->opening, &record.questions()[q].tokens})
        append(prompt.tokens, *part);
      add_slots(stack, record, q, stack.add(std::move(prompt)));
    }
  }
}

}  // namespace sheaf

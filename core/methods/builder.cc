#include "core/methods/builder.h"

#include "core/base/random_stream.h"

namespace sheaf {

Slot make_slot(const RecordParts& record, size_t question) {
  const QuestionParts& parts = record.questions()[question];
  Slot slot;
  slot.max_tokens = parts.max_tokens;
  slot.stop = parts.stop;
  slot.allowed = parts.copied ? record.copies : parts.allowed;
  slot.watch = parts.watch;
  slot.decoding = record.decoding;
  slot.stream = mix(record.stream, question);
  slot.record = record.record;
  slot.question = static_cast<int32_t>(question);
  slot.alone_tokens =
      static_cast<int32_t>(record.bin->instruction.size() + record.head.size() + record.document.size() +
                           record.bin->opening.size() + parts.tokens.size());
  return slot;
}

void add_slots(Stack& stack, const RecordParts& record, size_t question, SegmentId prompt) {
  Slot slot = make_slot(record, question);
  slot.prompt = slot.answer = prompt;
  const AnswerTrie* list = record.questions()[question].list();
  if (!list || list->options().empty()) return stack.slots.push_back(std::move(slot));
  std::vector<Sight> sees = stack.segments[prompt].sees;
  sees.push_back({prompt});
  for (const auto& option : list->options()) {
    slot.allowed = option;
    slot.max_tokens = option->longest();
    slot.answer = stack.add_after(sees, Role::value, {});
    stack.slots.push_back(slot);
    ++slot.option;
    slot.alone_tokens = 0;
  }
}

}  // namespace sheaf

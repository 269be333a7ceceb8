#include "core/methods/builder.h"

#include "core/base/error.h"
#include "core/base/random_stream.h"

namespace sheaf {

void check_chains(const RecordParts& record, std::string_view method) {
  if (record.documents.empty())
    refuse(
        "the method {} reads the documents of a record one by one, but these records have only one; set "
        "input.documents",
        method);
}

Slot make_slot(const RecordParts& record, size_t question) {
  const QuestionParts& parts = record.questions()[question];
  Slot slot;
  slot.max_tokens = parts.max_tokens;
  slot.stop = parts.stop;
  slot.allowed = parts.allowed;
  if (parts.form) slot.allowed = parts.form;
  slot.watch = parts.watch;
  slot.decoding = record.decoding;
  if (parts.copied) slot.allowed = record.copies;
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
  const auto& options = record.questions()[question].options;
  if (options.empty()) return stack.slots.push_back(std::move(slot));
  std::vector<Sight> sees = stack.segments[static_cast<size_t>(prompt)].sees;
  sees.push_back({prompt});
  for (const auto& option : options) {
    slot.allowed = option;
    slot.max_tokens = option->longest();
    slot.answer = stack.add({Role::value, {}, stack.end_position(prompt), sees, false});
    stack.slots.push_back(slot);
    ++slot.option;
    slot.alone_tokens = 0;
  }
}

}  // namespace sheaf

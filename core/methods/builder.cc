#include "core/methods/builder.h"

#include "core/base/random_stream.h"

namespace sheaf {
Slot make_slot(const RecordParts& record, size_t question) {
  const QuestionParts& parts = record.questions()[question];
  Slot slot;
  slot.max_tokens = parts.max_tokens;
  slot.stop = parts.stop;
  slot.allowed = parts.allowed;
  slot.stream = mix(record.stream, question);
  slot.record = record.record;
  slot.question = static_cast<int32_t>(question);
  slot.alone_tokens = static_cast<int32_t>(record.bin->instruction.size() + record.document.size() +
                                           record.bin->opening.size() + parts.tokens.size());
  return slot;
}

}  // namespace sheaf

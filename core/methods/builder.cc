#include "core/methods/builder.h"

#include "core/base/random_stream.h"

namespace sheaf {
Slot make_slot(const ItemParts& item, size_t question) {
  const QuestionParts& parts = item.questions()[question];
  Slot slot;
  slot.max_tokens = parts.max_tokens;
  slot.stop = parts.stop;
  slot.allowed = parts.allowed;
  slot.stream = mix(item.stream, question);
  slot.item = item.item;
  slot.question = static_cast<int32_t>(question);
  slot.alone_tokens = static_cast<int32_t>(item.bin->instruction.size() + item.document.size() +
                                           item.bin->opening.size() + parts.tokens.size());
  return slot;
}

}  // namespace sheaf

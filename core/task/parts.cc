#include "core/task/parts.h"

namespace sheaf {

bool has_same_document(const RecordParts& a, const RecordParts& b) {
  return a.document == b.document && a.head == b.head && a.bin->opening == b.bin->opening;
}

RecordParts ask_together(RecordParts record) {
  if (record.own_questions.size() < 2) return record;
  QuestionParts all = record.own_questions[0];
  for (size_t i = 1; i < record.own_questions.size(); ++i) {
    append(all.tokens, record.own_questions[i].tokens);
    all.max_tokens += record.own_questions[i].max_tokens;
  }
  all.allowed = nullptr;
  record.own_questions = {std::move(all)};
  return record;
}

}  // namespace sheaf

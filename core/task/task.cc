#include "core/task/task.h"

#include "core/base/error.h"

namespace sheaf {

std::vector<std::optional<Tokens>> Task::wanted(const Record&, const nlohmann::json&) const {
  refuse(
      "training data can be made for extract and ask jobs, with every method except pced, ape, map-reduce "
      "and "
      "seqbatch; choose another method.name");
}

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

#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/task/choices.h"
#include "core/task/prompt_text.h"
#include "core/task/task.h"

namespace sheaf {

/// Answers that are flat JSON objects: the keys are given, each value is decoded by itself under its key, and
/// what comes out fits the object's schema whatever the model writes.
class ObjectAnswer {
 public:
  explicit ObjectAnswer(const TaskContext& context);

  /// What the model is told of the object: the start of the user's last turn.
  static std::string instruction(const AnswerObject& object);
  /// The questions for a request's values, and the start of the answer. Refuses what cannot be decoded.
  std::shared_ptr<const BinParts> parts(const Record& record);
  RowAnswer read(const AnswerObject& object, const std::vector<Answer>& answers) const;

 private:
  QuestionParts make_question(const Attribute& attribute, int32_t max_tokens, bool sampled);
  std::shared_ptr<const PatternAnswers> find_form(const Attribute& attribute);

  const TaskContext context_;
  Between line_break_;  ///< before a key
  std::shared_ptr<const TokenSpelling> spelling_;
  std::map<std::string, std::shared_ptr<const PatternAnswers>> forms_;  ///< by pattern
  std::map<std::string, std::shared_ptr<const BinParts>> known_;        ///< by schema and limits
};

}  // namespace sheaf

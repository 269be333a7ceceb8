#pragma once
#include <map>

#include "core/task/asked_value.h"
#include "core/task/text_answers.h"

namespace sheaf {

/// Answers that are JSON objects: the keys are given, each value is decoded by itself under its key, those of
/// the entries of lists in a later round, and what comes out fits the object's schema whatever the model
/// writes.
class ObjectAnswer {
 public:
  explicit ObjectAnswer(const TaskContext& context);

  /// What the model is told of the object: the start of the user's last turn.
  static std::string instruction(const AnswerObject& object);

  /// The questions for a request's values, and the start of the answer. Refuses what cannot be decoded.
  std::shared_ptr<const BinParts> parts(const Record& record);

  RowAnswer read(const AnswerObject& object, const std::vector<Answer>& answers) const;

 private:
  /// The values of one schema, which its questions look at.
  struct Asked {
    std::shared_ptr<const AnswerObject> object;
    std::vector<AskedValue> values;
  };
  struct Limits {
    int32_t max_tokens;
    bool sampled;  ///< then options are not compared
  };
  class Reader;

  QuestionParts make_question(const AskedValue& value, const Limits& limits);
  std::shared_ptr<const EntryParts> make_entries(std::shared_ptr<const Asked> asked, const AskedValue& list,
                                                 const Limits& limits);
  void add_entries(const std::shared_ptr<const Asked>& asked, const AskedValue& value, const Limits& limits,
                   QuestionParts& question);
  Tokens entry_tokens(const AskedValue& list, const std::string& anchor) const;
  std::shared_ptr<const PatternAnswers> find_form(const Attribute& attribute);
  std::string key_text(const std::string& name) const;

  const TaskContext context_;
  Between line_break_;  ///< before a key
  PatternForms forms_;
  std::map<std::string, std::shared_ptr<const BinParts>> known_;  ///< by schema and limits
};

}  // namespace sheaf

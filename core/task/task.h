#pragma once
#include <compare>

#include "core/engine/answer.h"
#include "core/job/job.h"
#include "core/task/gold.h"
#include "core/task/parts.h"
#include "core/task/row.h"

namespace sheaf {

/// An answer to learn, as far as decoding goes or further.
struct WantedAnswer {
  std::optional<Tokens> tokens = {};  ///< nothing: what is right is not known
  /// Of a list of objects: for each entry that the tokens list, the answers about it, by field.
  std::vector<std::vector<WantedAnswer>> entries = {};
};

/// What a job asks of its records: turns a record into the parts of a prompt, and answers into a row. One
/// thread may call parts() while another calls row().
class Task {
 public:
  virtual ~Task() = default;

  /// Records with equal bins may share a prompt.
  virtual std::string bin_name(const Record& record) const = 0;
  /// The tokens of a record. `record.record` and `record.stream` are left to the caller.
  virtual RecordParts parts(const Record& record) = 0;
  /// What is extracted from a record; null: nothing is.
  virtual const std::vector<Attribute>* attributes(const Record&) const { return nullptr; }
  /// What the user should know of how its prompts are worded.
  virtual std::vector<std::string> notices() const { return {}; }
  /// The answers to learn, one per question of the record's parts. `gold`: attribute, or id of the question,
  /// to a value, null, or a list of accepted ones.
  virtual std::vector<WantedAnswer> wanted(const Record& record, const nlohmann::json& gold) const;
  /// The output row of a record from its answers, one per question of its parts. Always valid, whatever the
  /// model wrote; what has no answer is null with a note.
  virtual Row row(const Record& record, const std::vector<Answer>& answers) const = 0;
};

/// What one answer of a prompt holds.
enum class AnswerForm : uint8_t {
  each,    ///< the answer to one question, or the value of one attribute
  object,  ///< extract: all values of a record, as one JSON object
  list,    ///< all answers or values of a record, as one numbered list
};

/// How prompts are worded. Methods that word them alike have the same tokens.
struct Wording {
  AnswerForm answers = AnswerForm::each;
  bool plain_text = false;  ///< ask: document, question, answer, without the model's chat turns
  bool skeleton = false;    ///< values stand under given keys; method.values and method.stacking are its own
  bool one_by_one = false;  ///< ask: a record's documents are read one by one
  bool fused =
      false;  ///< one_by_one: each document has a chain of its own, and an answer is fused from all chains
  bool findings =
      false;  ///< one_by_one: each document gives a finding, and the questions are asked about these

  auto operator<=>(const Wording&) const = default;
};

struct TaskContext {
  const Tokenizer& tokenizer;
  const ChatTemplate& chat;
  const Job& job;
  Wording wording = {};
  const Examples* examples = nullptr;  ///< extract; null: none
};

/// One answer per attribute, or one per record: the JSON object with its keys.
std::unique_ptr<Task> make_extract_task(const TaskContext& context, const Schema& schema);
/// One answer per question.
std::unique_ptr<Task> make_ask_task(const TaskContext& context);
/// Everything that is asked of a record in one prompt, answered in one numbered list. `schema`: extract only.
std::unique_ptr<Task> make_list_task(const TaskContext& context, const Schema& schema);
/// The answer to a dialog, as the model's own chat template has it.
std::unique_ptr<Task> make_chat_task(const TaskContext& context);

}  // namespace sheaf

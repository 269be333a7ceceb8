#pragma once
#include "core/job/job.h"
#include "core/task/prompt_template.h"
#include "core/task/prompt_text.h"
#include "core/task/record.h"

namespace sheaf {

std::string without_line_end(std::string_view text);

/// A job's prompt in the user's own words (task.prompt), cut into the parts that prompts are made of. The
/// space between two parts is shared out so that they meet where the tokenizer cuts. A blank line stands
/// between a part of the user's and a built-in one.
class OwnPrompt {
 public:
  using Values = std::function<std::string(std::string_view field)>;

  /// What a task has where the user gives nothing.
  struct BuiltIn {
    bool apart = false;   ///< what stands before a document is part of it, not of the instruction
    bool labels = false;  ///< a document stands between labels: documents of a prompt see each other
    bool asks = false;    ///< a question follows the document
    bool answer_has_space = false;  ///< no turn stands before an answer, so that it begins with a space
  };
  OwnPrompt(const Tokenizer& tokenizer, const Job::Task::Prompt& prompt, const BuiltIn& built_in);

  bool has_document() const { return has_document_; }
  bool has_question() const { return question_.has_value(); }
  bool has_instruction() const { return instruction_.has_value(); }
  bool has_example() const { return example_.has_value(); }

  /// An example that stands in the instruction, and a blank line.
  std::string example(const Values& value_of) const {
    return without_line_end(example_->fill(value_of)) + "\n\n";
  }
  /// The instruction with the examples that follow it.
  std::string instruction(const Values& value_of) const;
  /// The user's text before a document. `instruction`: as above, or the built-in one. `heading`: stands
  /// between them where the document's words are built in, too.
  std::string head(std::string instruction, std::string_view heading) const;
  /// What of a document's words stands before its part.
  std::string before_document() const { return apart_ || labels_ ? "" : before_.fill({}) + lead_.first; }
  /// Refuses a prompt that begins with its document.
  void check_head(const Tokens& instruction) const;
  /// What stands around the document of such a number.
  std::pair<std::string, std::string> label(size_t number) const;
  /// A document's part, without its labels.
  std::string document(const Record& record, const std::string& text) const;
  /// What every document's part ends with; without columns, which a document that is cut must not have.
  std::string document_end() const {
    return labels_ ? "" : after_.fill([](auto) { return std::string(); }) + between_.first;
  }
  /// What follows the document, up to the end of the user's turn.
  std::string question(const Values& value_of) const;
  bool question_has(std::string_view field) const { return question_ && question_->has(field); }

  /// The space between document and question: it ends the one and begins the other.
  const Between& between() const { return between_; }
  /// Whether the answer begins with a space of its own.
  bool answer_has_space() const { return answer_has_space_; }
  /// The system turn; nothing: the chat template's own.
  std::optional<std::string> system(const Values& value_of) const;

 private:
  std::optional<PromptTemplate> system_, instruction_, question_, example_;
  bool has_document_, apart_, labels_;
  bool holds_text_;                ///< whether the document's text is wanted
  PromptTemplate before_, after_;  ///< of the document's text
  Between lead_;                   ///< the space before a document: ends the instruction, begins the document
  Between between_;
  bool answer_has_space_;
  std::string shots_;
};

/// What is asked in an example, and its answer.
struct ShownTurn {
  std::string asked, answer;
};

/// Everything before a document where examples are earlier turns of the chat: `before` begins the user's
/// first turn, `next` the others. `system`: as OwnPrompt::system().
TextPieces pieces_before(ChatTemplate chat, const std::optional<std::string>& system, std::string before,
                         const std::string& next, std::span<const ShownTurn> shown);

/// A column of a record that task.prompt names.
std::string field_of(const Record& record, std::string_view field);
/// {options}: a line for each, "A) Lima".
std::string options_text(const std::vector<std::string>& options);

}  // namespace sheaf

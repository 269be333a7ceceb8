#pragma once

#include "core/task/task.h"
#include "core/task/thinking.h"
#include "core/task/value.h"
#include "core/text/utf8.h"
#include "core/tokenizer/chat_template.h"

namespace sheaf {

using TextPieces = std::vector<TextPiece>;

/// The tokens of a prompt part that others stand before.
Tokens encode_part(const Tokenizer& tokenizer, const TextPieces& pieces);
Tokens encode_part(const Tokenizer& tokenizer, const std::string& text);

/// What a prompt begins with: the token for the beginning of a text where the model wants one.
Tokens begin_text(const Tokenizer& tokenizer);

/// The start of every prompt: beginning of text where the model wants one, the system turn, and the user's
/// turn up to and including `text`.
/// `system`: in place of the template's own; empty: no system turn.
TextPieces instruction_pieces(const ChatTemplate& chat, const std::string& text,
                              const std::optional<std::string>& system = {});
Tokens encode_instruction(const Tokenizer& tokenizer, const TextPieces& pieces);

/// The first of the parts whose last token is not where the tokenizer cuts their joined text; none where the
/// parts' tokens are those of the whole.
std::optional<size_t> find_bad_seam(const Tokenizer& tokenizer, const std::vector<TextPieces>& parts);

/// The text between two parts, shared out so that the parts meet where the tokenizer cuts.
struct Between {
  std::string first;   ///< ends the part before
  std::string second;  ///< begins the part after
};
/// `before` and `after`: how the parts end and begin, as a rule.
Between share_out(const Tokenizer& tokenizer, const std::string& before, const std::string& between,
                  const std::string& after);

/// What to tell the user of a prompt with such a seam; nothing where it has none.
std::vector<std::string> seam_notices(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                      const std::vector<TextPieces>& parts);

/// "models/tiny: its tokenizer (byte-level BPE (gpt-2), 12 tokens)", to say what it cannot do.
std::string tokenizer_name(const TaskContext& context);

/// Refuses a tokenizer that has no token for any letter of the instruction.
void check_tokenizer(const TaskContext& context);

/// `texts` as the only answers that may be given. Refuses where the tokenizer has no tokens for one of them
/// or spells two alike. `scored`: the likeliest as a whole is taken.
std::shared_ptr<const AnswerTrie> make_choices(const TaskContext& context,
                                               const std::vector<std::string>& texts, bool scored = false);

/// Why an answer of a method cannot be a span of its context; empty: it can.
std::string span_trouble(const Wording& wording, std::string_view method);

/// Whether the value is one of the attribute's options.
bool is_chosen(const Attribute& attribute);
/// Makes the options of such an attribute the only answers, and null where `nullable`. `scored`: the
/// likeliest as a whole is taken.
void add_choices(const TaskContext& context, const Attribute& attribute, bool nullable, bool scored,
                 QuestionParts& question);

/// Whether a record has one question, so that its row has one answer and no list: that of a column, or of
/// task.prompt.
bool asks_one_question(const Job& job);

/// An answer of chains in pieces, each with the document that spoke it; a line break at its end is left out.
/// `documents`: the ids of the documents, in the order of the chains.
std::vector<SpokenPiece> trace_answer(const Tokenizer& tokenizer, const Answer& answer,
                                      std::span<const nlohmann::json> documents);

/// A task with the tokenizer, the template and the job that word its prompts.
class WordedTask : public Task {
 protected:
  explicit WordedTask(const TaskContext& context)
      : context_(context), tokenizer_(context.tokenizer), chat_(context.chat), job_(context.job) {}

  /// The job's instruction, or the usual one.
  std::string instruction(std::string_view usual) const {
    return job_.task.instruction.empty() ? std::string(usual) : job_.task.instruction;
  }
  Tokens encode(const std::string& text) const { return encode_part(tokenizer_, text); }
  Tokens encode(const TextPieces& pieces) const { return encode_part(tokenizer_, pieces); }

  /// Adds what the job wants to know of an answer, or of all values of a record in one answer.
  template <class Read>
  void add_details(double logprob, const std::string& text, Read& read) const {
    if (job_.output.logprobs) read.logprob = logprob;
    if (job_.output.raw) read.raw = valid_utf8(text);
  }

  /// Adds what came before an answer.
  void note_thought(const ThoughtAnswer& said, RowAnswer& read) const {
    if (said.cut)
      read.note =
          (read.note.empty() ? "" : read.note + "; ") + "the thought was cut at model.reasoning_tokens";
    if (job_.output.reasoning) read.reasoning = valid_utf8(tokenizer_.decode(said.thought));
  }

  /// The row of answers to a record's questions.
  Row answers_row(const Record& record, std::vector<RowAnswer> read) const {
    if (asks_one_question(job_)) return {record.id, std::move(read.at(0))};
    std::vector<QuestionAnswer> list;
    for (size_t i = 0; i < read.size(); ++i) list.push_back({record.questions[i].id, std::move(read[i])});
    return {record.id, std::move(list)};
  }

  const TaskContext context_;
  const Tokenizer& tokenizer_;
  const ChatTemplate& chat_;
  const Job& job_;
};

}  // namespace sheaf

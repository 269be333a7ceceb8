#include "core/base/error.h"
#include "core/task/gold.h"
#include "core/task/prompt_text.h"
#include "core/task/record_row.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

constexpr std::string_view kReplaced = "\xEF\xBF\xBD";
constexpr const char* kPassage = "\n\nPassage:\n";

constexpr std::string_view kInstruction =
    "Answer the question about the passage with a few words copied from the passage. "
    "Answer null if the passage does not say.";

// A chain whose document does not help should not say so: another one's may.
constexpr std::string_view kChainInstruction = "Answer the question about the passage with a few words.";

// PCED's instruction for the first round of its baseline MapReduce.
constexpr std::string_view kSummaryInstruction =
    "Summarize the given documents concisely, focusing on the key points and main ideas.";

class AskTask : public WordedTask {
 public:
  explicit AskTask(const TaskContext& context)
      : WordedTask({context.tokenizer, context.wording.plain_text ? chat_template("plain") : context.chat,
                    context.job}),
        wording_(context.wording),
        chains_(wording_.one_by_one && !wording_.findings) {
    const std::string text = instruction(chains_ ? kChainInstruction : kInstruction);
    blank_line_ = share_out(tokenizer_, "A text.", "\n\n", "Question: ");
    // The amateur of chains reads no document, so its heading is the document's.
    instruction_ = text + (chains_ ? blank_line_.first : wording_.plain_text ? "\n\nDocument:" : kPassage);
    auto bin = std::make_shared<BinParts>();
    bin->instruction = encode_instruction(tokenizer_, instruction_pieces(chat_, instruction_));
    bin->closing = encode(blank_line_.first);
    bin_ = std::move(bin);
    null_ = encode(chat_.turn.empty() ? " null" : "null");
    watch_ = make_watch(job_, null_);
    chosen_watch_ = make_watch(job_, {});
    make_letters();
    if (!wording_.findings) return;
    findings_ = make_findings();
    if (job_.method.findings == Findings::summaries) summaries_ = make_summaries();
  }

  std::vector<std::string> notices() const override {
    Question probe;
    probe.text = "What?";
    return seam_notices(tokenizer_, chat_,
                        {instruction_pieces(chat_, instruction_),
                         {{document_text("A text."), false}},
                         question_pieces(probe)});
  }

  std::string bin_name(const Record&) const override { return "questions"; }

  RecordParts parts(const Record& record) override {
    RecordParts parts;
    parts.bin = bin_;
    for (const Question& question : record.questions) parts.own_questions.push_back(make_question(question));
    if (!wording_.one_by_one) {
      parts.document = encode(document_text(whole_document(record)));
      return parts;
    }
    parts.scored_by_question = job_.input.scored_by_question();
    for (size_t i = 0; i < record.documents.size(); ++i) {
      DocumentParts& chain = parts.documents.emplace_back();
      chain.tokens = encode(document_text(record.documents[i]));
      for (const Question& question : record.questions)
        chain.relevance.push_back(parts.scored_by_question ? 0.5f
                                                           : static_cast<float>(question.relevance[i]));
    }
    if (wording_.findings) parts.findings = summaries_ ? summaries_ : make_answers(record);
    return parts;
  }

  std::vector<std::optional<Tokens>> wanted(const Record& record, const nlohmann::json& gold) const override {
    if (wording_.one_by_one) return Task::wanted(record, gold);  // refuses
    std::vector<std::optional<Tokens>> answers;
    for (const Question& question : record.questions) {
      answers.emplace_back();
      const auto known = gold.find(gold_text(question.id.is_null() ? record.id : question.id));
      if (known == gold.end()) continue;
      const nlohmann::json answer = !known->is_array() ? *known
                                    : known->empty()   ? nlohmann::json()
                                                       : known->front();
      answers.back() = answer_tokens(question, answer.is_null() ? "null" : gold_text(answer));
    }
    return answers;
  }

  Row row(const Record& record, const std::vector<Answer>& answers) const override {
    std::vector<RowAnswer> read;
    for (size_t i = 0; i < record.questions.size(); ++i)
      read.push_back(i < answers.size() ? read_answer(record, record.questions[i], answers[i]) : no_answer());
    return answers_row(record, std::move(read));
  }

 private:
  std::string document_text(const std::string& text) const {
    return (chains_               ? blank_line_.second + "Passage:\n"
            : wording_.plain_text ? " "
                                  : "") +
           text + blank_line_.first;
  }

  FindingParts make_findings() const {
    FindingParts findings;
    findings.instruction = bin_->instruction;
    const size_t around = encode(document_text("")).size();
    // A finding takes its tokens and the blank line before the next finding. Some tokenizers encode "\n\n"
    // alone as one token and between two texts as two.
    const size_t between = std::max<size_t>(encode("\n\n").size(), 2);
    const auto each = static_cast<size_t>(job_.method.finding_tokens) + between;
    findings.most_tokens = [=](size_t count) { return around + count * each; };
    findings.document = [this, most = findings.most_tokens](std::span<const Tokens> found) {
      Tokens tokens = encode(document_text(join_findings(found)));
      // What a model wrote can take more tokens when it is read again.
      if (const size_t longest = most(found.size()); tokens.size() > longest) {
        tokens.resize(longest - std::min(longest, bin_->closing.size()));
        append(tokens, bin_->closing);
      }
      return tokens;
    };
    return findings;
  }

  /// Without those that are null or empty, and without what is no text.
  std::string join_findings(std::span<const Tokens> found) const {
    std::string text;
    for (const Tokens& tokens : found) {
      const std::string written = tokenizer_.decode(tokens);
      RowAnswer finding = summaries_ ? read_lines(written, false) : read_line(written, false);
      auto* said = std::get_if<std::string>(&finding.value);
      if (!said) continue;
      // A character that was cut would take more tokens as U+FFFD than it had.
      for (size_t at = said->find(kReplaced); at != std::string::npos; at = said->find(kReplaced, at))
        said->erase(at, kReplaced.size());
      if (!said->empty()) text += (text.empty() ? "" : "\n\n") + *said;
    }
    return text;
  }

  /// Each document is asked what the record is, in the same words.
  std::shared_ptr<const FindingParts> make_answers(const Record& record) const {
    FindingParts findings = *findings_;
    for (const Question& question : record.questions) {
      // The letter of an option would tell the last prompt nothing.
      const TextPieces pieces = question_pieces(question, !question.options.empty());
      findings.asked.push_back({encode(pieces), job_.method.finding_tokens, Stop::line, nullptr});
    }
    return std::make_shared<FindingParts>(std::move(findings));
  }

  std::shared_ptr<const FindingParts> make_summaries() const {
    FindingParts findings = *findings_;
    findings.instruction = encode_instruction(
        tokenizer_, instruction_pieces(chat_, std::string(kSummaryInstruction) + kPassage));
    TextPieces asked{{blank_line_.second, false}, {chat_.turn, true}};
    if (chat_.turn.empty()) asked = {{blank_line_.second + "Summary:", false}};
    // A text without turns has no other end.
    const Stop stop = chat_.turn.empty() ? Stop::line : Stop::text;
    findings.asked = {{encode(asked), job_.method.finding_tokens, stop, nullptr}};
    return std::make_shared<FindingParts>(std::move(findings));
  }

  /// The answer with what ends it.
  std::optional<Tokens> answer_tokens(const Question& question, const std::string& text) const {
    const std::string blank = chat_.turn.empty() ? " " : "";
    if (question.options.empty()) {
      Tokens tokens = encode_part(
          tokenizer_, {{blank + text, false}, {chat_.turn.empty() ? "\n" : chat_.answer_close, true}});
      if (!chat_.turn.empty() && tokenizer_.eos) tokens.push_back(*tokenizer_.eos);
      return tokens;
    }
    for (size_t i = 0; i < question.options.size(); ++i)
      if (text == option_letter(i)) return encode(blank + text);
    return std::nullopt;
  }

  /// As many as the tokenizer can spell; where questions have no options, none is needed.
  void make_letters() {
    std::vector<std::string> answers;
    try {
      while (letters_.size() < kMostOptions) {
        answers.push_back((chat_.turn.empty() ? " " : "") + option_letter(letters_.size()));
        letters_.push_back(make_choices(context_, answers));
      }
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      trouble_ = error.what();
    }
  }

  TextPieces question_pieces(const Question& question, bool in_words = false) const {
    std::string text = blank_line_.second + "Question: " + question.text + "\n";
    for (size_t i = 0; i < question.options.size(); ++i)
      text += option_letter(i) + ") " + question.options[i] + "\n";
    if (!question.options.empty())
      text += in_words ? "Answer with the text of the right option.\n"
                       : "Answer with the letter of the right option.\n";
    if (chat_.turn.empty()) return {{text + "Answer:", false}};
    return {{text, false}, {chat_.turn, true}};
  }

  QuestionParts make_question(const Question& question) {
    check_options(question);
    if (question.options.size() > letters_.size())
      refuse("a question has {} options, which are answered by letter: {}", question.options.size(),
             trouble_);
    QuestionParts parts;
    parts.tokens = encode(question_pieces(question));
    if (parts.tokens.empty())
      refuse("{} has no tokens for the question; use a model whose tokenizer covers its text",
             tokenizer_name(context_));
    parts.max_tokens = job_.method.max_value_tokens;
    parts.watch = question.options.empty() ? watch_ : chosen_watch_;
    if (!question.options.empty()) {
      parts.allowed = letters_[question.options.size() - 1];
      parts.max_tokens = std::max(parts.max_tokens, parts.list()->longest());
    }
    return parts;
  }

  RowAnswer read_answer(const Record& record, const Question& question, const Answer& answer) const {
    RowAnswer out;
    const std::string text = tokenizer_.decode(answer.tokens);
    if (!question.options.empty()) {
      const int32_t option = letters_[question.options.size() - 1]->find(answer.tokens);
      if (option < 0) fail("an answer outside its options was decoded");
      out.value = option_letter(static_cast<size_t>(option));
      out.option = question.options[option];
    } else {
      out = read_line(text, answer.ending == Ending::length);
    }
    if (job_.output.trace) out.trace = trace_answer(tokenizer_, answer, record.document_ids);
    add_details(answer.logprob, text, out);
    if (job_.output.confidence)
      out.confidence = confidence_of(out, answer, question.options.empty() ? null_ : Tokens());
    return out;
  }

  const Wording wording_;
  const bool chains_;   ///< the documents' chains are computed apart and read together
  Between blank_line_;  ///< before a document's heading and before a question
  std::string instruction_;
  std::shared_ptr<const BinParts> bin_;
  std::optional<FindingParts> findings_;           ///< what all first rounds have in common
  std::shared_ptr<const FindingParts> summaries_;  ///< where the first round is the same for all records
  Tokens null_;  ///< how a null answer begins; questions with options have none
  std::shared_ptr<const Watch> watch_, chosen_watch_;
  std::vector<std::shared_ptr<const AnswerTrie>> letters_;  ///< the first letter, the first two, …
  std::string trouble_;                                     ///< why there are not 26 of them
};

}  // namespace

std::unique_ptr<Task> make_ask_task(const TaskContext& context) {
  return std::make_unique<AskTask>(context);
}

}  // namespace sheaf

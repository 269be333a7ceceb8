#include <algorithm>

#include "core/base/error.h"
#include "core/task/find_text.h"
#include "core/task/gold.h"
#include "core/task/own_prompt.h"
#include "core/task/record_row.h"
#include "core/task/text_answers.h"
#include "core/task/thinking.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

constexpr std::string_view kReplaced = "\xEF\xBF\xBD";
constexpr const char* kPassage = "\n\nPassage:\n";
constexpr std::string_view kNextPassage = "Passage:\n";  // of a later turn
constexpr int64_t kShortestContext = 16;                 // tokens for which examples must leave room

constexpr std::string_view kInstruction =
    "Answer the question about the passage with a few words copied from the passage. "
    "Answer null if the passage does not say.";

// A chain whose document does not help should not say so: another one's may.
constexpr std::string_view kChainInstruction = "Answer the question about the passage with a few words.";

// PCED's instruction for the first round of its baseline MapReduce.
constexpr std::string_view kSummaryInstruction =
    "Summarize the given documents concisely, focusing on the key points and main ideas.";

/// The system text and the instruction have no fields.
std::string no_values(std::string_view) {
  return {};
}

class AskTask : public WordedTask {
 public:
  explicit AskTask(const TaskContext& context)
      : WordedTask({context.tokenizer, context.wording.plain_text ? chat_template("plain") : context.chat,
                    context.job}),
        wording_(context.wording),
        chains_(wording_.one_by_one && !wording_.findings),
        examples_(context.examples ? context.examples->of("") : std::vector<Example>()),
        own_(tokenizer_, job_.task.prompt,
             {.apart = chains_, .asks = true, .answer_has_space = chat_.turn.empty()}) {
    thinking_ = make_thinking({tokenizer_, chat_, job_});
    if (thinking_ && wording_.one_by_one)
      refuse("model.reasoning does not work with method.name {}; use ippd, separate or prefix",
             job_.method.name);
    blank_line_ = own_.between();
    bin_ = make_bin(examples_);
    own_.check_head(bin_->instruction);
    if (!examples_.empty()) check_examples(context.examples->positions);
    null_ = encode(answer_text("null"));
    watch_ = make_watch(job_, null_);
    if (watch_ && null_.empty())
      refuse(
          "{} has no tokens for null, which output.confidence and method.null_bias need; use another model",
          tokenizer_name(context_));
    if (job_.task.answers == AnswerKind::span && !job_.task.free_spans) make_span_tokens();
    chosen_watch_ = make_watch(job_, {});
    make_letters();
    if (!wording_.findings) return;
    findings_ = make_findings();
    if (job_.method.findings == Findings::summaries) summaries_ = make_summaries();
  }

  std::vector<std::string> notices() const override {
    Question probe;
    probe.text = "What?";
    return seam_notices(
        tokenizer_, chat_,
        {head_pieces({}), {{document_text({}, "A text."), false}}, question_pieces({}, probe)});
  }

  std::string bin_name(const Record& record) const override {
    const size_t own = own_example(record);
    return own == examples_.size() ? "questions" : fmt::format("questions\twithout example {}", own + 1);
  }

  RecordParts parts(const Record& record) override {
    RecordParts parts;
    parts.bin = bin_of(record);
    for (const Question& question : record.questions)
      parts.own_questions.push_back(make_question(record, question));
    if (!wording_.one_by_one) {
      parts.document = encode(document_text(record, whole_document(record)));
      if (std::ranges::any_of(parts.own_questions, &QuestionParts::copied)) add_copies(record, parts);
      return parts;
    }
    parts.scored_by_question = job_.input.scored_by_question();
    for (size_t i = 0; i < record.documents.size(); ++i) {
      DocumentParts& chain = parts.documents.emplace_back();
      chain.tokens = encode(document_text(record, record.documents[i]));
      for (const Question& question : record.questions)
        chain.relevance.push_back(parts.scored_by_question ? 0.5f
                                                           : static_cast<float>(question.relevance[i]));
    }
    if (wording_.findings) parts.findings = summaries_ ? summaries_ : make_answers(record);
    return parts;
  }

  std::vector<WantedAnswer> wanted(const Record& record, const nlohmann::json& gold) const override {
    if (wording_.one_by_one) return Task::wanted(record, gold);  // refuses
    if (thinking_) refuse("training data has no thoughts; set model.reasoning: none");
    std::vector<WantedAnswer> answers;
    for (const Question& question : record.questions) {
      answers.emplace_back();
      const auto known = gold.find(gold_text(question.id.is_null() ? record.id : question.id));
      if (known == gold.end()) continue;
      const nlohmann::json answer = !known->is_array() ? *known
                                    : known->empty()   ? nlohmann::json()
                                                       : known->front();
      answers.back().tokens = answer_tokens(question, answer.is_null() ? "null" : gold_text(answer));
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
  /// The example with the record's own text, which its prompt must not show; none: how many there are.
  size_t own_example(const Record& record) const {
    if (examples_.empty()) return 0;
    return static_cast<size_t>(std::ranges::find(examples_, whole_document(record), &Example::document) -
                               examples_.begin());
  }

  std::shared_ptr<const BinParts> bin_of(const Record& record) {
    const size_t own = own_example(record);
    if (own == examples_.size()) return bin_;
    std::shared_ptr<const BinParts>& bin = bins_without_[own];
    if (!bin) {
      std::vector<Example> shown = examples_;
      std::erase_if(shown, [&](const Example& each) { return each.document == examples_[own].document; });
      bin = make_bin(shown);
    }
    return bin;
  }

  std::shared_ptr<const BinParts> make_bin(std::span<const Example> shown) const {
    auto bin = std::make_shared<BinParts>();
    bin->instruction = encode_instruction(tokenizer_, head_pieces(shown));
    bin->closing = encode(own_.has_document() ? own_.document_end() : blank_line_.first);
    return bin;
  }

  /// The instruction with what stands between it and the document's part. `shown`: examples in the
  /// instruction.
  std::string head(const std::string& shown = "") const {
    // The amateur of chains reads no document, so its heading is the document's.
    const std::string heading = chains_               ? blank_line_.first
                                : wording_.plain_text ? "\n\nDocument:"
                                                      : kPassage;
    if (own_.has_instruction()) return own_.head(own_.instruction(no_values) + shown, heading);
    std::string text = instruction(chains_ ? kChainInstruction : kInstruction);
    if (!shown.empty()) text += "\n\n" + shown;
    if (own_.has_document() || !shown.empty()) return own_.head(text, heading);
    return text + heading;
  }

  /// Everything before a document: the instruction, and the examples in it or as turns between it and the
  /// document.
  TextPieces head_pieces(std::span<const Example> shown) const {
    const std::optional<std::string> system = own_.system(no_values);
    if (own_.has_example() && !shown.empty()) {
      std::string text;
      for (const Example& example : shown) text += example_text(example);
      return instruction_pieces(chat_, head(text), system);
    }
    std::vector<ShownTurn> turns;
    for (const Example& example : shown) {
      const auto& [question, answer] = read_example(example);
      turns.push_back({document_text({}, example.document) + question_text({}, question), answer});
    }
    return pieces_before(chat_, system, head(),
                         own_.has_document() ? own_.before_document() : std::string(kNextPassage), turns);
  }

  static std::pair<Question, std::string> read_example(const Example& example) {
    const ShownQuestion shown = read_shown(example.gold);
    Question question;
    question.text = shown.text;
    question.options = shown.options;
    return {question, shown.answer.value_or("null")};
  }

  /// The example in the words of task.prompt.example, and a blank line.
  std::string example_text(const Example& example) const {
    const auto& [question, answer] = read_example(example);
    const auto value_of = [&](std::string_view field) {
      return field == "document"   ? example.document
             : field == "question" ? question.text
             : field == "options"  ? options_text(question.options)
                                   : answer;
    };
    return own_.example(value_of);
  }

  void check_examples(int32_t positions) const {
    if (!own_.has_example() && chat_.answer_close.empty())
      refuse(
          "task.examples: the chat template {} supports only one turn, and each example is a turn; set "
          "model.chat to a template with several turns, or leave out task.examples",
          chat_.name);
    const int64_t room = std::min(job_.method.prompt_tokens, positions);
    const auto fits = [&](size_t count) {
      return std::ssize(make_bin(std::span(examples_).first(count))->instruction) +
                 job_.method.max_value_tokens + kShortestContext <=
             room;
    };
    if (fits(examples_.size())) return;
    size_t fitting = examples_.size();
    while (fitting > 0 && !fits(fitting)) --fitting;
    refuse(
        "task.examples: the instruction with {} examples has {} tokens and leaves no room for a context in "
        "{} "
        "(method.prompt_tokens, or the positions of the model); {}",
        examples_.size(), bin_->instruction.size(), room,
        fitting == 0 ? "leave out task.examples"
                     : fmt::format("set task.examples.per_category to at most {}", fitting));
  }

  void make_span_tokens() {
    if (!span_tokens_) span_tokens_ = make_bare_span_tokens(context_, null_, own_.answer_has_space());
  }

  /// Where in a document's part its text stands; npos: the user's words leave it out.
  size_t text_place(const Record& record) const { return document_text(record, "\1").find('\1'); }

  void add_copies(const Record& record, RecordParts& parts) const {
    using Copies = std::shared_ptr<const AllowedAnswers>;
    const auto text = std::make_shared<const std::string>(whole_document(record));
    const auto copies_of = [tokens = span_tokens_, text](size_t begin, size_t end) -> Copies {
      return std::make_shared<LateAnswers>(
          [=] { return std::make_unique<SpanAnswers>(tokens, *text, begin, end); });
    };
    parts.copies = copies_of(0, text->size());
    if (job_.input.too_long == TooLong::refuse) return;
    const std::string shown = document_text(record, *text);
    parts.part_copies = [this, shown, lead = text_place(record), size = text->size(), copies_of,
                         whole = parts.copies, places = std::vector<size_t>()](
                            std::span<const TokenId> document, size_t begin, size_t end) mutable {
      if (places.empty()) places = token_places(*span_tokens_, shown, document);
      // Parts whose place is not known share the copies of the whole document.
      if (end >= places.size() || lead == std::string::npos) return whole;
      const auto in_text = [&](size_t place) { return std::min(place - std::min(place, lead), size); };
      return copies_of(in_text(places[begin]), in_text(places[end]));
    };
  }

  /// An answer as it stands after a question.
  std::string answer_text(const std::string& text) const {
    return (own_.answer_has_space() ? " " : "") + text;
  }

  std::string document_text(const Record& record, const std::string& text) const {
    if (own_.has_document()) return own_.document(record, text);
    return (chains_               ? blank_line_.second + "Passage:\n"
            : wording_.plain_text ? " "
                                  : "") +
           text + blank_line_.first;
  }

  FindingParts make_findings() const {
    FindingParts findings;
    findings.instruction = bin_->instruction;
    const size_t around = encode(document_text({}, "")).size();
    // A finding takes its tokens and the blank line before the next finding. Some tokenizers encode "\n\n"
    // alone as one token and between two texts as two.
    const size_t between = std::max<size_t>(encode("\n\n").size(), 2);
    const auto each = static_cast<size_t>(job_.method.finding_tokens) + between;
    findings.most_tokens = [=](size_t count) { return around + count * each; };
    findings.document = [this, most = findings.most_tokens](std::span<const Tokens> found) {
      Tokens tokens = encode(document_text({}, join_findings(found)));
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
      const TextPieces pieces = question_pieces(record, question, !question.options.empty());
      findings.asked.push_back({encode(pieces), job_.method.finding_tokens, Stop::line, nullptr});
    }
    return std::make_shared<FindingParts>(std::move(findings));
  }

  std::shared_ptr<const FindingParts> make_summaries() const {
    FindingParts findings = *findings_;
    findings.instruction = encode_instruction(
        tokenizer_,
        instruction_pieces(chat_,
                           own_.has_document() ? own_.head(std::string(kSummaryInstruction) + "\n\n", "")
                                               : std::string(kSummaryInstruction) + kPassage,
                           own_.system(no_values)));
    TextPieces asked{{blank_line_.second, false}, {chat_.turn, true}};
    if (chat_.turn.empty()) asked = {{blank_line_.second + "Summary:", false}};
    // A text without turns has no other end.
    const Stop stop = chat_.turn.empty() ? Stop::line : Stop::text;
    findings.asked = {{encode(asked), job_.method.finding_tokens, stop, nullptr}};
    return std::make_shared<FindingParts>(std::move(findings));
  }

  /// The answer with what ends it.
  std::optional<Tokens> answer_tokens(const Question& question, const std::string& text) const {
    if (question.options.empty()) {
      const bool line_ends_it = chat_.turn.empty() && job_.task.prompt.answer_end == AnswerEnd::line;
      Tokens tokens = encode_part(
          tokenizer_, {{answer_text(text), false}, {line_ends_it ? "\n" : chat_.answer_close, true}});
      if (!line_ends_it && tokenizer_.eos) tokens.push_back(*tokenizer_.eos);
      return tokens;
    }
    for (size_t i = 0; i < question.options.size(); ++i)
      if (text == option_letter(i)) return encode(answer_text(text));
    return std::nullopt;
  }

  /// As many as the tokenizer can spell; where questions have no options, none is needed.
  void make_letters() {
    std::vector<std::string> answers;
    try {
      while (letters_.size() < kMostOptions) {
        answers.push_back(answer_text(option_letter(letters_.size())));
        letters_.push_back(make_choices(context_, answers));
      }
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      trouble_ = error.what();
    }
  }

  std::string own_question(const Record& record, const Question& question) const {
    if (!question.options.empty() && !own_.question_has("options"))
      refuse("the question has options, but task.prompt.question has no {{options}}");
    return own_.question([&](std::string_view field) {
      if (field == "question") return question.text;
      return field == "options" ? options_text(question.options) : field_of(record, field);
    });
  }

  /// What follows a document in the user's turn.
  std::string question_text(const Record& record, const Question& question, bool in_words = false) const {
    if (own_.has_question()) return own_question(record, question);
    std::string text = blank_line_.second + "Question: " + question.text + "\n";
    for (size_t i = 0; i < question.options.size(); ++i)
      text += option_letter(i) + ") " + question.options[i] + "\n";
    if (!question.options.empty())
      text += in_words ? "Answer with the text of the right option.\n"
                       : "Answer with the letter of the right option.\n";
    return text;
  }

  TextPieces question_pieces(const Record& record, const Question& question, bool in_words = false) const {
    const std::string text = question_text(record, question, in_words);
    if (chat_.turn.empty()) return {{text + (own_.has_question() ? "" : "Answer:"), false}};
    return {{text, false}, {thinks(question) ? chat_.think.turn : chat_.turn, true}};
  }

  /// Whether its answer comes after a thought: free ones do.
  bool thinks(const Question& question) const {
    return thinking_ && question.options.empty() && !copies(question);
  }

  QuestionParts make_question(const Record& record, const Question& question) {
    check_options(question);
    const AnswerKind kind = answer_kind(question, job_.task.answers);
    if (question.options.size() > letters_.size())
      refuse("a question has {} options, which are answered by letter: {}", question.options.size(),
             trouble_);
    QuestionParts parts;
    parts.tokens = encode(question_pieces(record, question));
    if (parts.tokens.empty())
      refuse("{} has no tokens for the question; use a model whose tokenizer covers its text",
             tokenizer_name(context_));
    parts.max_tokens = job_.method.max_value_tokens;
    if (thinks(question)) parts.thinking = thinking_;
    const bool copied = kind == AnswerKind::span && !job_.task.free_spans;
    if (job_.task.prompt.answer_end == AnswerEnd::end_of_text && !copied) parts.stop = Stop::text;
    parts.watch = question.options.empty() ? watch_ : chosen_watch_;
    if (!question.options.empty()) {
      parts.allowed = letters_[question.options.size() - 1];
      parts.max_tokens = std::max(parts.max_tokens, parts.list()->longest());
    }
    if (copied) {
      if (const std::string trouble = span_trouble(wording_, job_.method.name); !trouble.empty())
        refuse("{}", trouble);
      make_span_tokens();
      parts.copied = true;
      parts.search = make_search(job_);
      parts.max_tokens = std::max(parts.max_tokens, static_cast<int32_t>(null_.size()));
    }
    return parts;
  }

  /// A text that was copied, without what ends it.
  RowAnswer read_copy(const Record& record, const Answer& answer) const {
    std::span<const TokenId> tokens = answer.tokens;
    const bool cut = answer.ending == Ending::length;
    if (!cut && !tokens.empty() && std::ranges::binary_search(span_tokens_->closers, tokens.back()))
      tokens = tokens.first(tokens.size() - 1);
    RowAnswer out = read_line(tokenizer_.decode(tokens), cut);
    if (record.documents.empty()) {
      bind_span(record, cut, out);
    } else {
      Record joined;
      joined.document = whole_document(record);
      bind_span(joined, cut, out);
    }
    note_search(answer, out);
    return out;
  }

  bool copies(const Question& question) const {
    return !job_.task.free_spans && answer_kind(question, job_.task.answers) == AnswerKind::span;
  }

  RowAnswer read_answer(const Record& record, const Question& question, const Answer& whole) const {
    if (!thinks(question)) return read_said(record, question, whole);
    const ThoughtAnswer said = split_thought(*thinking_, whole.tokens);
    Answer answer = whole;
    answer.tokens.assign(said.answer.begin(), said.answer.end());
    RowAnswer out = read_said(record, question, answer);
    note_thought(said, out);
    return out;
  }

  RowAnswer read_said(const Record& record, const Question& question, const Answer& answer) const {
    RowAnswer out;
    const std::string text = tokenizer_.decode(answer.tokens);
    if (copies(question)) {
      out = read_copy(record, answer);
    } else if (!question.options.empty()) {
      const int32_t option = letters_[question.options.size() - 1]->find(answer.tokens);
      if (option < 0) fail("an answer outside its options was decoded");
      out.value = option_letter(static_cast<size_t>(option));
      out.option = question.options[option];
    } else {
      const bool line = job_.task.prompt.answer_end == AnswerEnd::line;
      out = (line ? read_line : read_lines)(text, answer.ending == Ending::length);
    }
    if (job_.output.trace) out.trace = trace_answer(tokenizer_, answer, record.document_ids);
    add_details(answer.logprob, text, out);
    if (!job_.output.confidence) return out;
    out.confidence = confidence_of(out, answer, question.options.empty() ? null_ : Tokens());
    if (question.options.empty()) out.null_margin = answer.null_margin;
    return out;
  }

  const Wording wording_;
  const bool chains_;  ///< the documents' chains are computed apart and read together
  const std::vector<Example> examples_;
  const OwnPrompt own_;
  std::map<size_t, std::shared_ptr<const BinParts>> bins_without_;  ///< by the example that is left out
  std::shared_ptr<const TokenSpelling> span_tokens_;                ///< where an answer is a span
  Between blank_line_;  ///< before a document's heading and before a question
  std::shared_ptr<const BinParts> bin_;
  std::optional<FindingParts> findings_;           ///< what all first rounds have in common
  std::shared_ptr<const FindingParts> summaries_;  ///< where the first round is the same for all records
  std::shared_ptr<const Thinking> thinking_;       ///< of free answers; null: they begin at once
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

#include <algorithm>
#include <tuple>

#include "core/base/error.h"
#include "core/task/text_answers.h"
#include "core/task/thinking.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostKnown = 1000;
constexpr int32_t kLongestForm = 32;  // tokens of a number or a date: a letter each, a space and an end

// As many digits as a double tells apart.
constexpr std::string_view kInteger = "-?(0|[1-9]\\d{0,14})";
constexpr std::string_view kNumber = "-?(0|[1-9]\\d{0,8})(\\.\\d{1,6})?";
// Days that the calendar has from the year 1000 on; February 29 in leap years.
constexpr std::string_view kDate =
    "[1-9]\\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2["
    "0-8]))|([1-9]\\d(0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)-02-29";

/// The expression that a value matches which is decoded letter by letter; empty: it is another one.
std::string expression_of(const Attribute& attribute) {
  if (attribute.type == ValueType::number) return std::string(kNumber);
  if (attribute.type == ValueType::integer) return std::string(kInteger);
  if (attribute.type == ValueType::date) return std::string(kDate);
  return attribute.type == ValueType::pattern ? attribute.pattern->text() : "";
}

ordered_json answer_json(const Attribute& attribute, const Answer& answer, const std::string& text,
                         std::string& note) {
  const bool cut = answer.ending == Ending::length;
  if (attribute.type == ValueType::text && !attribute.nullable) {
    if (cut) note = "cut at the length limit";
    return read_string(text);
  }
  RowAnswer read = read_value(attribute, text, cut);
  note = std::move(read.note);
  // Nothing to list is an empty list; what cannot be read is not.
  if (attribute.type == ValueType::list && !attribute.nullable && !is_found(read.value) && note.empty())
    return ordered_json::array();
  return value_json(read.value);
}

/// Answers that are flat JSON objects: the keys are given, each value is decoded by itself under its key, and
/// what comes out fits the object's schema whatever the model writes.
class ObjectAnswer {
 public:
  explicit ObjectAnswer(const TaskContext& context)
      : context_(context),
        line_break_(share_out(context.tokenizer, "{", "\n", "  \"a\":")),
        forms_(context.tokenizer) {}

  /// What the model is told of the object: the start of the user's last turn.
  static std::string instruction(const AnswerObject& object) {
    std::string text = "Answer with a JSON object that has these keys:\n";
    for (const Attribute& attribute : object.attributes) text += "- " + attribute_line(attribute);
    return text + "\n";
  }

  /// The questions for a request's values, and the start of the answer. Refuses what cannot be decoded.
  std::shared_ptr<const BinParts> parts(const Record& record) {
    const int32_t own = record.max_tokens > 0 ? record.max_tokens : INT32_MAX;
    const int32_t max_tokens = std::min(context_.job.method.max_value_tokens, own);
    const bool sampled =
        (record.decoding ? record.decoding->temperature : context_.job.method.temperature) > 0;
    const std::string key = fmt::format("{} {} {}", max_tokens, sampled, record.object->schema);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    auto bin = std::make_shared<BinParts>();
    const Tokenizer& tokenizer = context_.tokenizer;
    bin->instruction = begin_text(tokenizer);
    const std::string& turn = context_.chat.turn;
    bin->opening =
        encode_part(tokenizer, {{turn.empty() ? "\n" : turn, true}, {"{" + line_break_.first, false}});
    for (const Attribute& attribute : record.object->attributes)
      bin->questions.push_back(make_question(attribute, max_tokens, sampled));
    if (known_.size() >= kMostKnown) known_.clear();
    return known_[key] = std::move(bin);
  }

  RowAnswer read(const AnswerObject& object, const std::vector<Answer>& answers) const {
    ordered_json::object_t values;
    RowAnswer out;
    std::string raw;
    double logprob = 0;
    out.finish = Finish::stop;
    for (size_t i = 0; i < object.attributes.size(); ++i) {
      const Attribute& attribute = object.attributes[i];
      const std::string text = context_.tokenizer.decode(answers[i].tokens);
      std::string note;
      values.emplace_back(attribute.name, answer_json(attribute, answers[i], text, note));
      const bool cut = answers[i].ending == Ending::length;
      if (cut && out.finish == Finish::stop) out.finish = Finish::length;
      if (!cut && !note.empty() && values.back().second.is_null()) out.finish = Finish::error;
      if (!note.empty()) out.note += (out.note.empty() ? "" : "; ") + attribute.name + ": " + note;
      raw += attribute.name + ":" + text + "\n";
      logprob += answers[i].logprob;
    }
    out.value = ordered_json(std::move(values)).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    if (context_.job.output.logprobs) out.logprob = logprob;
    if (context_.job.output.raw) out.raw = valid_utf8(raw);
    return out;
  }

 private:
  QuestionParts make_question(const Attribute& attribute, int32_t max_tokens, bool sampled) {
    QuestionParts question;
    std::string key = line_break_.second + "  " + nlohmann::json(attribute.name).dump() + ":";
    question.stop = Stop::value;
    // A text that must be one has its opening quote already, so that null cannot be written.
    if (attribute.type == ValueType::text && !attribute.nullable) {
      key += " \"";
      question.stop = Stop::quoted;
    }
    question.tokens = encode_part(context_.tokenizer, key);
    if (question.tokens.empty())
      refuse("{} has no tokens for the key \"{}\"; use a model whose tokenizer covers it",
             tokenizer_name(context_), attribute.name);
    question.max_tokens = max_tokens;
    if (is_chosen(attribute))
      add_choices(context_, attribute, attribute.nullable,
                  !sampled && context_.job.method.options == OptionChoice::likeliest, question);
    if (auto form = find_form(attribute)) {
      question.allowed = std::move(form);
      if (attribute.type != ValueType::pattern)
        question.max_tokens = std::max(question.max_tokens, kLongestForm);
    }
    return question;
  }

  std::shared_ptr<const PatternAnswers> find_form(const Attribute& attribute) {
    const std::string expression = expression_of(attribute);
    if (expression.empty()) return nullptr;
    const bool quoted = attribute.type != ValueType::number && attribute.type != ValueType::integer;
    auto form = forms_.find(Pattern(expression), {quoted, attribute.nullable});
    if (!form && !attribute.nullable)
      refuse("{} has no tokens for some of the letters that \"{}\" may have; use another model",
             tokenizer_name(context_), attribute.name);
    return form;
  }

  const TaskContext context_;
  Between line_break_;  ///< before a key
  PatternForms forms_;
  std::map<std::string, std::shared_ptr<const BinParts>> known_;  ///< by schema and limits
};

/// The next turn of a dialog: free text up to the end that the model puts, or a JSON object. What stands
/// before the user's last text is shared by the dialogs that begin so.
class ChatTask : public WordedTask {
 public:
  explicit ChatTask(const TaskContext& context)
      : WordedTask(context), thinking_(make_thinking(context)), objects_(context) {
    auto bin = std::make_shared<BinParts>();
    bin->instruction = begin_text(tokenizer_);
    bin_ = std::move(bin);
  }

  std::string bin_name(const Record& record) const override { return record.object ? "objects" : "dialogs"; }

  RecordParts parts(const Record& record) override {
    RecordParts parts;
    parts.decoding = record.decoding;
    DialogPieces pieces = dialog_pieces(chat_, record.dialog);
    if (record.object) {
      parts.bin = objects_.parts(record);
      pieces.before.push_back({ObjectAnswer::instruction(*record.object), false});
      pieces.last.pop_back();  // the turn to the model opens the answer
      std::tie(parts.head, parts.document) = encode_both(pieces);
      return parts;
    }
    parts.bin = bin_;
    QuestionParts question;
    question.thinking = thinking_;
    if (thinking_) pieces.last.back() = {chat_.think.turn, true};
    std::tie(parts.document, question.tokens) = encode_both(pieces);
    if (question.tokens.empty())
      refuse("{} has no tokens for the prompt; use a model whose tokenizer covers its text",
             tokenizer_name(context_));
    question.max_tokens = job_.method.max_value_tokens;
    if (record.max_tokens > 0) question.max_tokens = std::min(question.max_tokens, record.max_tokens);
    question.stop = Stop::text;
    parts.own_questions.push_back(std::move(question));
    return parts;
  }

  Row row(const Record& record, const std::vector<Answer>& answers) const override {
    if (answers.empty()) return {record.id, no_answer()};
    if (record.object) return {record.id, objects_.read(*record.object, answers)};
    const Answer& answer = answers[0];
    const ThoughtAnswer said =
        thinking_ ? split_thought(*thinking_, answer.tokens) : ThoughtAnswer{{}, answer.tokens};
    std::string text = tokenizer_.decode(said.answer);
    size_t end = text.size();
    if (record.decoding)
      for (const std::string& stop : record.decoding->stops) end = std::min(end, text.find(stop));
    text.resize(end);
    RowAnswer out{valid_utf8(text)};
    out.finish = answer.ending == Ending::length ? Finish::length : Finish::stop;
    note_thought(said, out);
    if (job_.output.logprobs) out.logprob = answer.logprob;
    if (job_.output.raw) out.raw = valid_utf8(tokenizer_.decode(answer.tokens, false));
    return {record.id, std::move(out)};
  }

 private:
  /// The tokens of both parts, which are together those of the whole text; the second has one at least.
  std::pair<Tokens, Tokens> encode_both(DialogPieces& pieces) const {
    Tokens before, whole;
    tokenizer_.encode_pieces(pieces.before, before);
    std::move(pieces.last.begin(), pieces.last.end(), std::back_inserter(pieces.before));
    tokenizer_.encode_pieces(pieces.before, whole);
    // A token across the border goes to the second part.
    auto cut = std::mismatch(before.begin(), before.end(), whole.begin(), whole.end()).second;
    if (cut == whole.end() && cut != whole.begin()) --cut;
    return {Tokens(whole.begin(), cut), Tokens(cut, whole.end())};
  }

  std::shared_ptr<const BinParts> bin_;
  std::shared_ptr<const Thinking> thinking_;  ///< of free texts; null: they do not
  ObjectAnswer objects_;
};

}  // namespace

std::unique_ptr<Task> make_chat_task(const TaskContext& context) {
  return std::make_unique<ChatTask>(context);
}

}  // namespace sheaf

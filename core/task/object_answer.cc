#include "core/task/object_answer.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/task/attribute_line.h"
#include "core/task/value.h"
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
    "0-8]))"
    "|([1-9]\\d(0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)-02-29";

/// The expression that a value matches which is decoded letter by letter; empty: it is another one.
std::string expression_of(const Attribute& attribute) {
  switch (attribute.type) {
    case ValueType::number:
      return std::string(kNumber);
    case ValueType::integer:
      return std::string(kInteger);
    case ValueType::date:
      return std::string(kDate);
    case ValueType::pattern:
      return attribute.pattern->text();
    default:
      return {};
  }
}

ordered_json value_json(const Attribute& attribute, const Answer& answer, const std::string& text,
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
  return std::visit([](const auto& value) { return ordered_json(value); }, read.value);
}

}  // namespace

ObjectAnswer::ObjectAnswer(const TaskContext& context)
    : context_(context), line_break_(share_out(context.tokenizer, "{", "\n", "  \"a\":")) {}

std::string ObjectAnswer::instruction(const AnswerObject& object) {
  std::string text = "Answer with a JSON object that has these keys:\n";
  for (const Attribute& attribute : object.attributes) text += "- " + attribute_line(attribute);
  return text + "\n";
}

std::shared_ptr<const BinParts> ObjectAnswer::parts(const Record& record) {
  const int32_t own = record.max_tokens > 0 ? record.max_tokens : INT32_MAX;
  const int32_t max_tokens = std::min(context_.job.method.max_value_tokens, own);
  const bool sampled = (record.decoding ? record.decoding->temperature : context_.job.method.temperature) > 0;
  const std::string key = fmt::format("{} {} {}", max_tokens, sampled, record.object->schema);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  auto bin = std::make_shared<BinParts>();
  const Tokenizer& tokenizer = context_.tokenizer;
  if (tokenizer.starts_with_bos && tokenizer.bos) bin->instruction.push_back(*tokenizer.bos);
  const std::string& turn = context_.chat.turn;
  bin->opening =
      encode_part(tokenizer, {{turn.empty() ? "\n" : turn, true}, {"{" + line_break_.first, false}});
  for (const Attribute& attribute : record.object->attributes)
    bin->questions.push_back(make_question(attribute, max_tokens, sampled));
  if (known_.size() >= kMostKnown) known_.clear();
  return known_[key] = std::move(bin);
}

QuestionParts ObjectAnswer::make_question(const Attribute& attribute, int32_t max_tokens, bool sampled) {
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
  question.form = find_form(attribute);
  if (question.form && attribute.type != ValueType::pattern)
    question.max_tokens = std::max(question.max_tokens, kLongestForm);
  return question;
}

std::shared_ptr<const PatternAnswers> ObjectAnswer::find_form(const Attribute& attribute) {
  const std::string expression = expression_of(attribute);
  if (expression.empty()) return nullptr;
  if (!spelling_) spelling_ = std::make_shared<TokenSpelling>(context_.tokenizer);
  const bool quoted = attribute.type != ValueType::number && attribute.type != ValueType::integer;
  if (forms_.size() >= kMostKnown) forms_.clear();
  const auto [form, added] =
      forms_.try_emplace(fmt::format("{}{}", attribute.nullable ? "?" : "", expression));
  if (added)
    form->second = PatternAnswers::make(spelling_, Pattern(expression), {quoted, attribute.nullable});
  if (!form->second && !attribute.nullable)
    refuse("{} has no tokens for some of the letters that \"{}\" may have; use another model",
           tokenizer_name(context_), attribute.name);
  return form->second;
}

RowAnswer ObjectAnswer::read(const AnswerObject& object, const std::vector<Answer>& answers) const {
  ordered_json::object_t values;
  RowAnswer out;
  std::string raw;
  double logprob = 0;
  out.finish = Finish::stop;
  for (size_t i = 0; i < object.attributes.size(); ++i) {
    const Attribute& attribute = object.attributes[i];
    const std::string text = context_.tokenizer.decode(answers[i].tokens);
    std::string note;
    values.emplace_back(attribute.name, value_json(attribute, answers[i], text, note));
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

}  // namespace sheaf

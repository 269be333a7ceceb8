#include "core/task/object_answer.h"

#include "core/base/error.h"
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

/// Whether an object says nothing: all that is in it is null or empty.
bool is_void(const ordered_json& value) {
  if (!value.is_structured()) return value.is_null();
  return std::ranges::all_of(value, is_void);
}

/// The values of the answers to a schema's questions, one after the other.
using FindAnswer = std::function<const Answer*(size_t question)>;

}  // namespace

/// Puts the answers of one request together.
class ObjectAnswer::Reader {
 public:
  Reader(const Tokenizer& tokenizer, RowAnswer& out) : tokenizer_(tokenizer), out_(out) {}

  ordered_json read_object(const std::vector<Attribute>& attributes, const std::vector<AskedValue>& values,
                           size_t& next, const std::string& path, const FindAnswer& find) {
    ordered_json::object_t object;
    for (const Attribute& attribute : attributes)
      object.emplace_back(attribute.name, read(attribute, values, next, path, find));
    return object;
  }

  std::string raw;
  double logprob = 0;

 private:
  ordered_json read(const Attribute& own, const std::vector<AskedValue>& values, size_t& next,
                    const std::string& above, const FindAnswer& find) {
    const std::string path = above.empty() ? own.name : above + "." + own.name;
    if (own.type == ValueType::object) {
      ordered_json object = read_object(own.fields, values, next, path, find);
      return own.nullable && is_void(object) ? ordered_json() : object;
    }
    const AskedValue& value = values[next];
    const Answer* answer = find(next++);
    if (!answer) return nullptr;
    const std::string text = tokenizer_.decode(answer->tokens);
    raw += path + ":" + text + "\n";
    logprob += answer->logprob;
    if (own.type == ValueType::entries) return read_entries(value, *answer, text, path);
    std::string note;
    ordered_json read = answer_json(own, *answer, text, note);
    say(path, note, answer->ending == Ending::length, read.is_null());
    return read;
  }

  ordered_json read_entries(const AskedValue& list, const Answer& answer, const std::string& text,
                            const std::string& path) {
    const Attribute& own = *list.own;
    const Anchors anchors = read_anchors(own, text);
    const bool cut = answer.ending == Ending::length;
    say(path, cut ? "cut at the length limit" : anchors.note, cut, !anchors.readable);
    if (!anchors.readable || (anchors.texts.empty() && own.nullable)) return nullptr;
    // Two entries are never equal, as their anchors differ.
    if (const double fewest = own.limits.fewest.value_or(0);
        static_cast<double>(anchors.texts.size()) < fewest) {
      say(path, fmt::format("fewer than {} entries", fewest), false, true);
      return nullptr;
    }
    const size_t fields = list.fields.size();
    const std::vector<const Answer*> inner = inner_answers(answer, anchors.texts.size(), fields);
    ordered_json entries = ordered_json::array();
    for (size_t entry = 0; entry < anchors.texts.size(); ++entry) {
      const FindAnswer find = [&](size_t field) { return inner[entry * fields + field]; };
      const std::string here = fmt::format("{}[{}]", path, entry);
      ordered_json::object_t object;
      size_t next = 0;
      for (size_t i = 0; i < own.fields.size(); ++i)
        object.emplace_back(own.fields[i].name, i == own.anchor
                                                    ? read_anchor(own.fields[i], anchors.texts[entry], here)
                                                    : read(own.fields[i], list.fields, next, here, find));
      entries.push_back(std::move(object));
    }
    return entries;
  }

  ordered_json read_anchor(const Attribute& anchor, const std::string& text, const std::string& path) {
    if (anchor.type == ValueType::text) return text;
    const RowAnswer read = read_text_value(anchor, text);
    say(path + "." + anchor.name, read.note, false, !is_found(read.value));
    return value_json(read.value);
  }

  /// Adds what is wrong with a value to what is said of the whole answer.
  void say(const std::string& path, const std::string& note, bool cut, bool lost) {
    if (cut && out_.finish == Finish::stop) out_.finish = Finish::length;
    if (!cut && !note.empty() && lost) out_.finish = Finish::error;
    if (!note.empty()) out_.note += (out_.note.empty() ? "" : "; ") + path + ": " + note;
  }

  const Tokenizer& tokenizer_;
  RowAnswer& out_;
};

ObjectAnswer::ObjectAnswer(const TaskContext& context)
    : context_(context),
      line_break_(share_out(context.tokenizer, "{", "\n", "  \"a\":")),
      forms_(context.tokenizer) {}

std::string ObjectAnswer::instruction(const AnswerObject& object) {
  std::string text = "Answer with a JSON object that has these keys:\n";
  for (const Attribute& attribute : listed_attributes(asked_values(object.attributes)))
    text += "- " + attribute_line(attribute);
  return text + "\n";
}

std::shared_ptr<const BinParts> ObjectAnswer::parts(const Record& record) {
  const int32_t own = record.max_tokens > 0 ? record.max_tokens : INT32_MAX;
  const Limits limits{std::min(context_.job.method.max_value_tokens, own),
                      (record.decoding ? record.decoding->temperature : context_.job.method.temperature) > 0};
  const std::string key = fmt::format("{} {} {}", limits.max_tokens, limits.sampled, record.object->schema);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  if (const std::string most = too_many_asked(record.object->attributes); !most.empty())
    refuse("the schema's lists could come to {}; lower maxItems", most);
  const auto asked =
      std::make_shared<const Asked>(Asked{record.object, asked_values(record.object->attributes)});
  auto bin = std::make_shared<BinParts>();
  const Tokenizer& tokenizer = context_.tokenizer;
  bin->instruction = begin_text(tokenizer);
  const std::string& turn = context_.chat.turn;
  bin->opening =
      encode_part(tokenizer, {{turn.empty() ? "\n" : turn, true}, {"{" + line_break_.first, false}});
  for (const AskedValue& value : asked->values) {
    bin->questions.push_back(make_question(value, limits));
    add_entries(asked, value, limits, bin->questions.back());
  }
  if (known_.size() >= kMostKnown) known_.clear();
  return known_[key] = std::move(bin);
}

RowAnswer ObjectAnswer::read(const AnswerObject& object, const std::vector<Answer>& answers) const {
  RowAnswer out;
  out.finish = Finish::stop;
  Reader reader(context_.tokenizer, out);
  size_t next = 0;
  const ordered_json values =
      reader.read_object(object.attributes, asked_values(object.attributes), next, "",
                         [&](size_t i) { return i < answers.size() ? &answers[i] : nullptr; });
  out.value = values.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  if (context_.job.output.logprobs) out.logprob = reader.logprob;
  if (context_.job.output.raw) out.raw = valid_utf8(reader.raw);
  return out;
}

std::string ObjectAnswer::key_text(const std::string& name) const {
  return line_break_.second + "  " + nlohmann::json(name).dump() + ":";
}

QuestionParts ObjectAnswer::make_question(const AskedValue& value, const Limits& limits) {
  const Attribute& attribute = value.attribute;
  QuestionParts question;
  std::string key = key_text(attribute.name);
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
  question.max_tokens = limits.max_tokens;
  if (is_chosen(attribute))
    add_choices(context_, attribute, attribute.nullable,
                !limits.sampled && context_.job.method.options == OptionChoice::likeliest, question);
  if (auto form = find_form(attribute)) {
    question.allowed = std::move(form);
    if (attribute.type != ValueType::pattern)
      question.max_tokens = std::max(question.max_tokens, kLongestForm);
  }
  return question;
}

/// Adds what is asked of each entry of a list of objects; nothing to another value.
void ObjectAnswer::add_entries(const std::shared_ptr<const Asked>& asked, const AskedValue& value,
                               const Limits& limits, QuestionParts& question) {
  if (value.own->type != ValueType::entries) return;
  question.max_tokens += kAnchorTokens * (value.own->max_entries - 1);
  question.entries = make_entries(asked, value, limits);
}

std::shared_ptr<const EntryParts> ObjectAnswer::make_entries(std::shared_ptr<const Asked> asked,
                                                             const AskedValue& list, const Limits& limits) {
  auto parts = std::make_shared<EntryParts>();
  parts->most_entries = static_cast<size_t>(list.own->max_entries);
  parts->anchors = list.own->fields[list.own->anchor].options;
  const auto longest = static_cast<size_t>(limits.max_tokens);
  parts->most_tokens = entry_tokens(list, "").size() + longest;
  parts->spare_tokens = longest - std::min<size_t>(longest, kAnchorTokens);
  for (const AskedValue& field : list.fields) {
    parts->questions.push_back(make_question(field, limits));
    add_entries(asked, field, limits, parts->questions.back());
  }
  parts->entries = [this, asked = std::move(asked), &list, most = parts->most_tokens](const Tokens& answer) {
    std::vector<Tokens> opened;
    for (const std::string& anchor : read_anchors(*list.own, context_.tokenizer.decode(answer)).texts) {
      opened.push_back(
          fit_anchor(anchor, most, [&](const std::string& shown) { return entry_tokens(list, shown); }));
    }
    return opened;
  };
  return parts;
}

/// What stands before the fields of an entry: its anchor under its key.
Tokens ObjectAnswer::entry_tokens(const AskedValue& list, const std::string& anchor) const {
  return encode_part(context_.tokenizer, key_text(list.attribute.name) + " " +
                                             nlohmann::json(anchor).dump(
                                                 -1, ' ', false, nlohmann::json::error_handler_t::replace) +
                                             "," + line_break_.first);
}

std::shared_ptr<const PatternAnswers> ObjectAnswer::find_form(const Attribute& attribute) {
  const std::string expression = expression_of(attribute);
  if (expression.empty()) return nullptr;
  const bool quoted = attribute.type != ValueType::number && attribute.type != ValueType::integer;
  auto form = forms_.find(Pattern(expression), {quoted, attribute.nullable});
  if (!form && !attribute.nullable)
    refuse("{} has no tokens for some of the letters that \"{}\" may have; use another model",
           tokenizer_name(context_), attribute.name);
  return form;
}

}  // namespace sheaf

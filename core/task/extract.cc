#include <algorithm>

#include "core/base/error.h"
#include "core/task/asked_value.h"
#include "core/task/find_text.h"
#include "core/task/gold.h"
#include "core/task/own_prompt.h"
#include "core/task/record_row.h"
#include "core/task/text_answers.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr std::string_view kExtractInstruction =
    "Extract the attributes below from the product text. Copy each value from the text as it is written "
    "there. Write null for an attribute that the text does not mention.";
constexpr std::string_view kJointInstruction =
    "Extract the attributes below from each product. Copy each value from the product's text as it is "
    "written there. Write null for an attribute that the text does not mention. Answer with a JSON object "
    "that has a key for each product id and under it a key for each attribute.";

constexpr std::string_view kProduct = "Product:\n";
constexpr int64_t kShortestDocument = 16;  // tokens for which examples must leave room
constexpr int64_t kMostWritten = 100'000;  // tokens of an answer that holds all values

const Examples& no_examples() {
  static const Examples none;
  return none;
}

class ExtractTask : public WordedTask {
 public:
  ExtractTask(const TaskContext& context, const Schema& schema)
      : WordedTask(context),
        schema_(schema),
        examples_(context.examples ? *context.examples : no_examples()),
        whole_(context.wording.answers == AnswerForm::object),
        joint_(!whole_ && context.wording.skeleton && context.job.method.stacking == Stacking::joint),
        alone_(!context.job.task.list_attributes),
        own_(tokenizer_, job_.task.prompt, {.labels = joint_}),
        forms_(context.tokenizer) {
    line_break_ = share_out(tokenizer_, "{", "\n", markers() ? "1:" : "  \"a\":");
    null_ = encode(" null");
    watch_ = make_watch(job_, null_);
    if (watch_ && null_.empty())
      refuse(
          "{} has no tokens for null, which output.confidence and method.null_bias need; use another model",
          tokenizer_name(context));
    // What the tokenizer cannot do is said before the first row.
    if (whole_ && encode(answer_opening()).empty())
      refuse("{} has no token for the {{ that opens an answer; use another model, or the method hpd",
             tokenizer_name(context));
    for (const Category& category : schema.categories) {
      if (!whole_ && !span_tokens_ && has_spans(category.attributes))
        span_tokens_ = make_span_tokens(context);
      AskedCategory& asked = asked_[category.name];
      if (!whole_) asked.values = asked_values(category.attributes);
      asked.listed = {category.name, whole_ ? category.attributes : listed_attributes(asked.values)};
      for (const AskedValue& value : asked.values) make_question(asked.listed, value, 0);
    }
    if (!examples_.by_category.empty() && !own_.has_example() && chat_.answer_close.empty())
      refuse(
          "task.examples: the chat template {} supports only one turn, and each example is a turn; set "
          "model.chat to a template with several turns, or leave out task.examples",
          chat_.name);
    for (const Category& category : schema.categories)
      if (const auto& shown = examples_.of(category.name); !shown.empty())
        bins_[category.name] = make_bin(category, shown);
    check_room(schema);
  }

  std::vector<std::string> notices() const override {
    const Category probe{"", {{"Brand", "the maker"}}};
    std::vector<Example> shown;
    if (!examples_.by_category.empty()) shown.push_back({"A cup, 3 oz.", {{"Brand", "Oak"}}});
    std::vector<TextPieces> parts{head_pieces(probe, shown), document_pieces({}, "A pen, 7 in.")};
    if (!alone_) parts.push_back(opening_pieces(probe));
    parts.push_back(question_pieces(probe, AskedValue{probe.attributes[0]}, 0));
    parts.push_back({{" \"x\",", false}});
    return seam_notices(tokenizer_, chat_, parts);
  }

  const std::vector<Attribute>* attributes(const Record& record) const override {
    return &category_of(record).attributes;
  }

  std::string bin_name(const Record& record) const override {
    const size_t own = own_example(record);
    if (own == examples_.of(record.category).size()) return record.category;
    // A tab: no category of a schema is called so.
    return fmt::format("{}\twithout example {}", record.category, own + 1);
  }

  RecordParts parts(const Record& record) override {
    std::shared_ptr<const BinParts>& bin = bins_[bin_name(record)];
    if (!bin) {
      std::vector<Example> shown = examples_.of(record.category);
      if (const size_t own = own_example(record); own < shown.size())
        shown.erase(shown.begin() + static_cast<ptrdiff_t>(own));
      bin = make_bin(category_of(record), shown);
    }
    RecordParts parts;
    parts.bin = bin;
    parts.document = encode(document_pieces(record, record.document));
    if (!whole_ && has_spans(category_of(record).attributes)) add_copies(record, parts);
    return parts;
  }

  std::vector<WantedAnswer> wanted(const Record& record, const json& gold) const override {
    const Category& category = category_of(record);
    if (whole_) return {{encode(object_text(category, written_values(category.attributes, gold))), {}}};
    return wanted_values(asked_.at(category.name).values, asked_gold(category.attributes, gold), tokenizer_);
  }

  Row row(const Record& record, const std::vector<Answer>& answers) const override {
    ExtractedValues out{record.category};
    const Category& category = category_of(record);
    if (!whole_ || answers.empty()) {
      size_t next = 0;
      const FindAnswer find = [&](size_t i) { return i < answers.size() ? &answers[i] : nullptr; };
      for (const Attribute& attribute : category.attributes)
        out.values.push_back(
            {attribute.name, read_attribute(record, attribute, asked_.at(category.name).values, next, find)});
      return {record.id, std::move(out)};
    }
    const std::string text = tokenizer_.decode(answers[0].tokens);
    const WrittenObject object = read_object(text);
    const bool cut = answers[0].ending == Ending::length;
    for (const Attribute& attribute : category.attributes) {
      out.values.push_back({attribute.name, read_member(attribute, object, cut)});
      bind_values(record, attribute, job_.method.numbers == Numbers::copied, out.values.back().answer);
    }
    add_details(answers[0].logprob, text, out);
    return {record.id, std::move(out)};
  }

 private:
  /// A category as it is asked for.
  struct AskedCategory {
    Category listed;                 ///< as the prompt lists it, paths as names
    std::vector<AskedValue> values;  ///< one for each question; empty where one answer holds all
  };
  /// The answer to a question, or null.
  using FindAnswer = std::function<const Answer*(size_t question)>;

  const Category& category_of(const Record& record) const { return schema_.of(record.category); }

  /// The example with the record's own text, which its prompt must not show; none: how many there are.
  size_t own_example(const Record& record) const {
    const std::vector<Example>& shown = examples_.of(record.category);
    return static_cast<size_t>(std::ranges::find(shown, record.document, &Example::document) - shown.begin());
  }

  /// Positional values see one another as they are decoded, token by token; samples are drawn so too.
  bool scores_options() const {
    return job_.method.options == OptionChoice::likeliest && job_.method.temperature == 0 &&
           job_.method.values == ValueSight::independent;
  }

  /// What follows the opening brace.
  std::string object_text(const Category& category,
                          const std::vector<std::optional<std::string>>& values) const {
    std::string text;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i]) continue;
      text += (text.empty() ? line_break_.second : ",\n") + key_name(category.attributes[i], i) + " " +
              *values[i];
    }
    return text + "\n}";
  }

  /// The answer of an example, as `listed` calls its category's attributes.
  std::string shown_answer(const Category& listed, const json& gold) const {
    const auto asked = asked_.find(listed.name);
    if (whole_ || asked == asked_.end())
      return "{" + line_break_.first + object_text(listed, written_values(listed.attributes, gold));
    const auto known = asked_gold(schema_.of(listed.name).attributes, gold);
    std::string text;
    const std::vector<AskedValue>& values = asked->second.values;
    for (const auto& [attribute, written] : shown_values(values, known)) {
      const auto at = std::ranges::find(values, attribute.name,
                                        [](const AskedValue& value) { return value.attribute.name; });
      text += (text.empty() ? line_break_.second : ",\n") +
              key_name(attribute, static_cast<size_t>(at - values.begin())) + " " + written;
    }
    return "{" + line_break_.first + text + "\n}";
  }

  bool markers() const { return !whole_ && job_.method.keys == KeyForm::marker; }

  std::string line(const std::string& text) const { return line_break_.second + text + line_break_.first; }

  std::string key_name(const Attribute& attribute, size_t index) const {
    return markers() ? fmt::format("{}:", index + 1) : "  " + json(attribute.name).dump() + ":";
  }

  std::string key_text(const Attribute& attribute, size_t index) const {
    return line_break_.second + key_name(attribute, index);
  }

  /// A line for each attribute.
  std::string attribute_list(const Category& category) const {
    std::string text;
    for (size_t i = 0; i < category.attributes.size(); ++i) {
      text += (markers() ? fmt::format("{}. ", i + 1) : "- ") + attribute_line(category.attributes[i]);
      if (whole_) text += field_lines(category.attributes[i], "  ");
    }
    return text;
  }

  static std::string field_lines(const Attribute& attribute, const std::string& indent) {
    std::string text;
    for (const Attribute& field : attribute.fields)
      text += indent + "- " + attribute_line(field) + field_lines(field, indent + "  ");
    return text;
  }

  OwnPrompt::Values about(const Category& category, std::string_view attributes) const {
    return [&category, list = without_line_end(attributes)](std::string_view field) {
      return field == "attributes" ? list : field == "category" ? category.name : std::string();
    };
  }

  std::optional<std::string> own_system(const Category& category) const {
    return own_.system(about(category, attribute_list(category)));
  }

  /// The instruction with the heading of the document that follows it.
  std::string instruction_text(const Category& category, const std::string& shown = "") const {
    const std::string heading = joint_ ? "Products:\n" : std::string(kProduct);
    if (own_.has_instruction())
      return own_.head(own_.instruction(about(category, attribute_list(category))) + shown, "\n\n" + heading);
    std::string text = instruction(joint_ ? kJointInstruction : kExtractInstruction);
    if (!alone_) text += "\n\nAttributes:\n" + attribute_list(category);
    if (!shown.empty()) text += (alone_ ? "\n\n" : "\n") + shown;
    if (own_.has_document()) return own_.head(text, "");
    return text + (alone_ ? "\n\n" : "\n") + heading;
  }

  /// Everything before a document: the instruction, and the examples as turns between it and the document.
  TextPieces head_pieces(const Category& category, std::span<const Example> shown) const {
    if (own_.has_example() && !shown.empty()) {
      std::string text;
      for (const Example& example : shown) text += example_text(category, example);
      return instruction_pieces(chat_, instruction_text(category, text), own_system(category));
    }
    Record record;
    record.category = category.name;
    std::vector<ShownTurn> turns;
    for (const Example& example : shown)
      turns.push_back({(own_.has_document() ? own_.document(record, example.document) : example.document) +
                           (own_.has_question() ? own_question(category, attribute_list(category)) : ""),
                       shown_answer(category, example.gold)});
    return pieces_before(chat_, own_system(category), instruction_text(category),
                         own_.has_document() ? own_.before_document() : std::string(kProduct), turns);
  }

  /// Tokens of the prompt that asks about the shortest document.
  int64_t least_tokens(const BinParts& bin) const {
    const bool chains = job_.method.values == ValueSight::positional;
    int64_t longest = 0;
    for (const QuestionParts& question : bin.questions) {
      const int64_t tokens = std::ssize(question.tokens) + question.max_tokens;
      longest = chains ? longest + tokens : std::max(longest, tokens);
    }
    return std::ssize(bin.instruction) + std::ssize(bin.opening) + longest + kShortestDocument;
  }

  bool fits(const BinParts& bin) const {
    return least_tokens(bin) <= std::min(job_.method.prompt_tokens, examples_.positions);
  }

  /// Refuses examples that leave no room for a document, and says how many fit in every category.
  void check_room(const Schema& schema) const {
    const Category* worst = nullptr;
    size_t most = 0;
    for (const Category& category : schema.categories) {
      const std::span<const Example> all = examples_.of(category.name);
      if (all.empty() || fits(*bins_.at(category.name))) continue;
      size_t fitting = 0, unfitting = all.size();
      while (unfitting - fitting > 1) {
        const size_t middle = fitting + (unfitting - fitting) / 2;
        (fits(*make_bin(category, all.first(middle))) ? fitting : unfitting) = middle;
      }
      if (worst && fitting >= most) continue;
      worst = &category;
      most = fitting;
    }
    if (!worst) return;
    const size_t count = examples_.of(worst->name).size();
    const bool by_prompt = job_.method.prompt_tokens < examples_.positions;
    refuse(
        "task.examples: category \"{}\": the instruction with {} example{} has {} tokens and leaves no room "
        "for a document in {}; {}, or {}",
        worst->name, count, count == 1 ? "" : "s", bins_.at(worst->name)->instruction.size(),
        by_prompt ? fmt::format("a prompt of {} (method.prompt_tokens)", job_.method.prompt_tokens)
                  : fmt::format("the {} positions of the model", examples_.positions),
        most == 0 ? "leave out task.examples"
                  : fmt::format("set task.examples.per_category to at most {}", most),
        by_prompt ? "raise method.prompt_tokens" : "use a model with a longer context");
  }

  /// Between the user's turn and the first key.
  TextPieces answer_opening() const { return {{chat_.turn, true}, {"{" + line_break_.first, false}}; }

  std::string own_question(const Category& category, std::string_view attributes) const {
    return own_.question(about(category, attributes));
  }

  /// From the end of the document to the start of the answer.
  TextPieces opening_pieces(const Category& category) const {
    TextPieces pieces = answer_opening();
    if (own_.has_question())
      pieces.insert(pieces.begin(), {own_question(category, attribute_list(category)), false});
    return pieces;
  }

  /// The lines of an attribute and of those inside of it, and the start of the answer, where the instruction
  /// lists none.
  TextPieces alone_opening(const Category& listed, const AskedValue& value) const {
    std::string lines;
    for (const Attribute& each : listed_attributes({&value, 1})) lines += "- " + attribute_line(each);
    TextPieces pieces = answer_opening();
    pieces.insert(pieces.begin(),
                  {own_.has_question() ? own_question(listed, lines) : "\n\nAttributes:\n" + lines, false});
    return pieces;
  }

  /// What asks for a value: its key, and where the instruction does not list it, what it means.
  TextPieces question_pieces(const Category& listed, const AskedValue& value, size_t index) const {
    TextPieces pieces;
    if (alone_) pieces = alone_opening(listed, value);
    pieces.push_back({key_text(value.attribute, index), false});
    return pieces;
  }

  TextPieces document_pieces(const Record& record, const std::string& text) const {
    if (own_.has_document()) return {{own_.document(record, text), false}};
    if (joint_) return {{text, false}};
    const bool turns = !chat_.turn.empty() || own_.has_question();
    return {{text + (turns ? own_.between().first : "\n"), false}};
  }

  /// The example in the words of task.prompt.example, and a blank line.
  std::string example_text(const Category& category, const Example& example) const {
    const std::string answer = shown_answer(category, example.gold);
    const auto value_of = [&](std::string_view field) {
      return field == "document" ? example.document : field == "answer" ? answer : category.name;
    };
    return own_.example(value_of);
  }

  std::shared_ptr<const BinParts> make_bin(const Category& category, std::span<const Example> shown) const {
    const AskedCategory& asked = asked_.at(category.name);
    auto bin = std::make_shared<BinParts>();
    bin->instruction = encode_instruction(tokenizer_, head_pieces(asked.listed, shown));
    own_.check_head(bin->instruction);
    bin->closing =
        encode(own_.has_document() ? TextPieces{{own_.document_end(), false}} : document_pieces({}, ""));
    if (list_depth(category.attributes) > 0)
      bin->advice =
          "lower max_entries in the schema or method.max_value_tokens, shorten the document, or set "
          "input.too_long";
    if (whole_) {
      QuestionParts object;
      object.tokens = encode(opening_pieces(asked.listed));
      object.stop = Stop::object;
      object.max_tokens = 8 + most_written(category.attributes);
      bin->questions.push_back(std::move(object));
      return bin;
    }
    if (!alone_) bin->opening = encode(opening_pieces(asked.listed));
    for (size_t i = 0; i < asked.values.size(); ++i)
      bin->questions.push_back(make_question(asked.listed, asked.values[i], i));
    if (joint_) bin->label = [this](size_t j) { return make_label(j + 1); };
    return bin;
  }

  /// Tokens that the values of an object and their keys may take.
  int32_t most_written(const std::vector<Attribute>& attributes) const {
    int64_t tokens = 0;
    for (const Attribute& attribute : attributes) {
      const int64_t each = attribute.nested() ? most_written(attribute.fields) : job_.method.max_value_tokens;
      const int64_t count = attribute.type == ValueType::entries ? attribute.max_entries : 1;
      tokens += std::ssize(encode(key_text(attribute, 0))) + count * each;
    }
    return static_cast<int32_t>(std::min<int64_t>(tokens, kMostWritten));
  }

  DocumentLabel make_label(size_t number) const {
    const auto [open, close] = own_.has_document() ? own_.label(number)
                                                   : std::pair(fmt::format("<product id=\"{}\">\n", number),
                                                               "\n</product>\n" + own_.between().first);
    return {encode(open), encode(close), encode(line(fmt::format("\"{}\": {{", number))),
            encode(line("},") + line(fmt::format("\"{}\": {{", number)))};
  }

  /// `listed`: as the prompt lists the category.
  QuestionParts make_question(const Category& listed, const AskedValue& value, size_t index) const {
    QuestionParts question = make_answer(value);
    question.tokens = encode(question_pieces(listed, value, index));
    if (value.own->type == ValueType::entries) question.entries = make_entries(listed, value, alone_);
    return question;
  }

  /// How the answer to a question is decoded.
  QuestionParts make_answer(const AskedValue& value) const {
    const Attribute& attribute = value.attribute;
    QuestionParts question;
    if (encode(key_text(attribute, 0)).empty())
      refuse("{} has no tokens for the attribute \"{}\"; use a model whose tokenizer covers its name",
             tokenizer_name(context_), attribute.name);
    question.max_tokens = job_.method.max_value_tokens;
    if (value.own->type == ValueType::entries)
      question.max_tokens += kAnchorTokens * (value.own->max_entries - 1);
    question.stop = job_.method.value_end == ValueEnd::line ? Stop::line : Stop::value;
    question.watch = watch_;
    if (is_chosen(attribute)) add_choices(context_, attribute, true, scores_options(), question);
    if (attribute.type == ValueType::pattern) question.allowed = forms_.find(*attribute.pattern);
    if (attribute.type == ValueType::span) {
      question.copied = true;
      question.search = make_search(job_);
      question.max_tokens = std::max(question.max_tokens, static_cast<int32_t>(span_tokens_->null.size()));
    }
    return question;
  }

  /// The questions about each entry of a list of objects. `opens`: the answer begins with the entry, as
  /// nothing but the document stands before it.
  std::shared_ptr<const EntryParts> make_entries(const Category& listed, const AskedValue& list,
                                                 bool opens) const {
    auto parts = std::make_shared<EntryParts>();
    parts->most_entries = static_cast<size_t>(list.own->max_entries);
    parts->anchors = list.own->fields[list.own->anchor].options;
    const auto longest = static_cast<size_t>(job_.method.max_value_tokens);
    parts->most_tokens = encode(entry_pieces(listed, list, "", opens)).size() + longest;
    parts->spare_tokens = longest - std::min<size_t>(longest, kAnchorTokens);
    parts->entries = [this, &listed, &list, opens, most = parts->most_tokens](const Tokens& answer) {
      std::vector<Tokens> opened;
      for (const std::string& anchor : read_anchors(*list.own, tokenizer_.decode(answer)).texts) {
        opened.push_back(fit_anchor(anchor, most, [&](const std::string& shown) {
          return encode(entry_pieces(listed, list, shown, opens));
        }));
      }
      return opened;
    };
    for (const AskedValue& field : list.fields) {
      QuestionParts question = make_answer(field);
      question.tokens = encode(key_text(field.attribute, 0));
      if (field.own->type == ValueType::entries) question.entries = make_entries(listed, field, false);
      parts->questions.push_back(std::move(question));
    }
    return parts;
  }

  /// What stands before the fields of an entry: its anchor under its key.
  TextPieces entry_pieces(const Category& listed, const AskedValue& list, const std::string& anchor,
                          bool opens) const {
    const std::string text = line_break_.second + "  " + json(list.attribute.name).dump() + ": " +
                             json(anchor).dump(-1, ' ', false, json::error_handler_t::replace) + "," +
                             line_break_.first;
    TextPieces pieces;
    if (opens) pieces = alone_opening(listed, list);
    pieces.push_back({text, false});
    return pieces;
  }

  static bool has_spans(const std::vector<Attribute>& attributes) {
    return std::ranges::any_of(attributes, [](const Attribute& each) {
      return each.type == ValueType::span || has_spans(each.fields);
    });
  }

  void add_copies(const Record& record, RecordParts& parts) const {
    using Copies = std::shared_ptr<const AllowedAnswers>;
    const auto text = std::make_shared<const std::string>(record.document);
    const auto copies_of = [tokens = span_tokens_, text](size_t begin, size_t end) -> Copies {
      return std::make_shared<LateAnswers>(
          [=] { return std::make_unique<SpanAnswers>(tokens, *text, begin, end); });
    };
    parts.copies = copies_of(0, text->size());
    if (job_.input.too_long == TooLong::refuse) return;
    parts.part_copies = [this, text, copies_of, whole = parts.copies, places = std::vector<size_t>()](
                            std::span<const TokenId> document, size_t begin, size_t end) mutable {
      if (places.empty()) places = token_places(*span_tokens_, *text, document);
      // Parts whose place is not known share the copies of the whole document.
      return end < places.size() ? copies_of(places[begin], places[end]) : whole;
    };
  }

  /// The value of an attribute from the answers to the questions about it, of which `next` is the first.
  RowAnswer read_attribute(const Record& record, const Attribute& own, const std::vector<AskedValue>& values,
                           size_t& next, const FindAnswer& find) const {
    if (own.type == ValueType::object) {
      RowObject object;
      for (const Attribute& field : own.fields)
        object.values.push_back({field.name, read_attribute(record, field, values, next, find)});
      return {std::move(object)};
    }
    const AskedValue& value = values[next];
    const Answer* answer = find(next++);
    if (!answer) return no_answer();
    return own.type == ValueType::entries ? read_entries(record, value, *answer)
                                          : read_own(record, own, *answer);
  }

  /// A list of objects, from the answer that lists its anchors and those about its entries.
  RowAnswer read_entries(const Record& record, const AskedValue& list, const Answer& answer) const {
    const Attribute& own = *list.own;
    const std::string text = tokenizer_.decode(answer.tokens);
    const Anchors anchors = read_anchors(own, text);
    const size_t fields = list.fields.size();
    const std::vector<const Answer*> inner = inner_answers(answer, anchors.texts.size(), fields);
    std::vector<RowObject> entries;
    for (size_t entry = 0; entry < anchors.texts.size(); ++entry) {
      const FindAnswer find = [&](size_t field) { return inner[entry * fields + field]; };
      RowObject& object = entries.emplace_back();
      size_t next = 0;
      for (size_t i = 0; i < own.fields.size(); ++i) {
        RowAnswer value;
        if (i == own.anchor) {
          value = read_text_value(own.fields[i], anchors.texts[entry]);
          bind_values(record, own.fields[i], job_.method.numbers == Numbers::copied, value);
          if (own.fields[i].type == ValueType::text) note_made_up(record, value);
        } else {
          value = read_attribute(record, own.fields[i], list.fields, next, find);
        }
        object.values.push_back({own.fields[i].name, std::move(value)});
      }
    }
    RowAnswer out{std::move(entries), anchors.note};
    if (!anchors.readable) out.value = nullptr;
    if (answer.ending == Ending::length) out.note = "cut at the length limit";
    hold_limits(own, out);
    add_answer_details(answer, text, out);
    return out;
  }

  /// The value from an answer of its own.
  RowAnswer read_own(const Record& record, const Attribute& attribute, const Answer& answer) const {
    const std::string text = tokenizer_.decode(answer.tokens);
    const bool cut = answer.ending == Ending::length;
    RowAnswer out = read_value(as_converted(record, attribute, text), text, cut);
    if (attribute.type == ValueType::span) bind_span(record, cut, out);
    check_digits(record, attribute, job_.method.numbers == Numbers::copied, out);
    if (job_.method.cut_values == CutValues::null || !has_sense_when_cut(attribute.type)) drop_cut_value(out);
    note_search(answer, out);
    add_answer_details(answer, text, out);
    return out;
  }

  void add_answer_details(const Answer& answer, const std::string& text, RowAnswer& out) const {
    add_details(answer.logprob, text, out);
    if (!job_.output.confidence) return;
    out.confidence = confidence_of(out, answer, null_);
    out.null_margin = answer.null_margin;
  }

  const Schema& schema_;
  const Examples& examples_;
  bool whole_, joint_;
  bool alone_;  ///< every attribute is asked for as if there were no other
  const OwnPrompt own_;
  Between line_break_;  ///< before a line of the answer
  Tokens null_;         ///< how a null value begins
  std::shared_ptr<const Watch> watch_;
  std::shared_ptr<const TokenSpelling> span_tokens_;  ///< where an attribute is a span
  mutable PatternForms forms_;
  std::map<std::string, AskedCategory> asked_;                   ///< by category
  std::map<std::string, std::shared_ptr<const BinParts>> bins_;  ///< by name
};

}  // namespace

std::unique_ptr<Task> make_extract_task(const TaskContext& context, const Schema& schema) {
  return std::make_unique<ExtractTask>(context, schema);
}

}  // namespace sheaf

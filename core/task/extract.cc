#include <algorithm>

#include "core/base/error.h"
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
      if (!whole_ && !span_tokens_ && has_spans(category)) span_tokens_ = make_span_tokens(context);
      for (const Attribute& attribute : category.attributes)
        if (!whole_) make_question(category, attribute, 0);
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
    parts.push_back(question_pieces(probe, probe.attributes[0], 0));
    parts.push_back({{" \"x\",", false}});
    return seam_notices(tokenizer_, chat_, parts);
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
    if (!whole_ && has_spans(category_of(record))) add_copies(record, parts);
    return parts;
  }

  std::vector<std::optional<Tokens>> wanted(const Record& record, const json& gold) const override {
    const Category& category = category_of(record);
    const std::vector<std::optional<std::string>> values = written_values(category, gold);
    if (whole_) return {encode(object_text(category, values))};
    std::vector<std::optional<Tokens>> answers(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i]) continue;
      // One of several options ends where it is chosen.
      const bool chosen = is_chosen(category.attributes[i]);
      answers[i] = encode(" " + *values[i] + (chosen ? "" : ",\n"));
    }
    return answers;
  }

  Row row(const Record& record, const std::vector<Answer>& answers) const override {
    ExtractedValues out{record.category};
    const Category& category = category_of(record);
    if (!whole_ || answers.empty()) {
      for (size_t i = 0; i < category.attributes.size(); ++i)
        out.values.push_back(
            {category.attributes[i].name,
             i < answers.size() ? read_own(record, category.attributes[i], answers[i]) : no_answer()});
      return {record.id, std::move(out)};
    }
    const std::string text = tokenizer_.decode(answers[0].tokens);
    const WrittenObject object = read_object(text);
    const bool cut = answers[0].ending == Ending::length;
    for (const Attribute& attribute : category.attributes) {
      out.values.push_back({attribute.name, read_member(attribute, object, cut)});
      if (attribute.type == ValueType::span) bind_span(record, false, out.values.back().answer);
      check_digits(record, attribute, job_.method.numbers == Numbers::copied, out.values.back().answer);
    }
    add_details(answers[0].logprob, text, out);
    return {record.id, std::move(out)};
  }

 private:
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

  static std::vector<std::optional<std::string>> written_values(const Category& category, const json& gold) {
    std::vector<std::optional<std::string>> values;
    for (const Attribute& attribute : category.attributes) {
      const auto known = gold.find(attribute.name);
      values.push_back(known == gold.end() ? std::nullopt : write_value(attribute, *known));
    }
    return values;
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
    for (size_t i = 0; i < category.attributes.size(); ++i)
      text += (markers() ? fmt::format("{}. ", i + 1) : "- ") + attribute_line(category.attributes[i]);
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
      turns.push_back(
          {(own_.has_document() ? own_.document(record, example.document) : example.document) +
               (own_.has_question() ? own_question(category, attribute_list(category)) : ""),
           "{" + line_break_.first + object_text(category, written_values(category, example.gold))});
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

  /// What asks for an attribute: its key, and where the instruction does not list it, what it means.
  TextPieces question_pieces(const Category& category, const Attribute& attribute, size_t index) const {
    TextPieces pieces;
    if (alone_) {
      const std::string line = "- " + attribute_line(attribute);
      pieces = answer_opening();
      pieces.insert(pieces.begin(),
                    {own_.has_question() ? own_question(category, line) : "\n\nAttributes:\n" + line, false});
    }
    pieces.push_back({key_text(attribute, index), false});
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
    const std::string answer =
        "{" + line_break_.first + object_text(category, written_values(category, example.gold));
    const auto value_of = [&](std::string_view field) {
      return field == "document" ? example.document : field == "answer" ? answer : category.name;
    };
    return own_.example(value_of);
  }

  std::shared_ptr<const BinParts> make_bin(const Category& category, std::span<const Example> shown) const {
    auto bin = std::make_shared<BinParts>();
    bin->instruction = encode_instruction(tokenizer_, head_pieces(category, shown));
    own_.check_head(bin->instruction);
    bin->closing =
        encode(own_.has_document() ? TextPieces{{own_.document_end(), false}} : document_pieces({}, ""));
    if (whole_) {
      QuestionParts object;
      object.tokens = encode(opening_pieces(category));
      object.stop = Stop::object;
      object.max_tokens = 8;
      for (const Attribute& attribute : category.attributes)
        object.max_tokens +=
            static_cast<int32_t>(encode(key_text(attribute, 0)).size()) + job_.method.max_value_tokens;
      bin->questions.push_back(std::move(object));
      return bin;
    }
    if (!alone_) bin->opening = encode(opening_pieces(category));
    for (size_t i = 0; i < category.attributes.size(); ++i)
      bin->questions.push_back(make_question(category, category.attributes[i], i));
    if (joint_) bin->label = [this](size_t j) { return make_label(j + 1); };
    return bin;
  }

  DocumentLabel make_label(size_t number) const {
    const auto [open, close] = own_.has_document() ? own_.label(number)
                                                   : std::pair(fmt::format("<product id=\"{}\">\n", number),
                                                               "\n</product>\n" + own_.between().first);
    return {encode(open), encode(close), encode(line(fmt::format("\"{}\": {{", number))),
            encode(line("},") + line(fmt::format("\"{}\": {{", number)))};
  }

  QuestionParts make_question(const Category& category, const Attribute& attribute, size_t index) const {
    QuestionParts question;
    question.tokens = encode(question_pieces(category, attribute, index));
    if (encode(key_text(attribute, index)).empty())
      refuse("{} has no tokens for the attribute \"{}\"; use a model whose tokenizer covers its name",
             tokenizer_name(context_), attribute.name);
    question.max_tokens = job_.method.max_value_tokens;
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

  static bool has_spans(const Category& category) {
    return std::ranges::any_of(category.attributes,
                               [](const Attribute& each) { return each.type == ValueType::span; });
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

  /// The attribute, with a decimal point where the model wrote a number in JSON that the document has with a
  /// decimal comma: it was converted, so 1.125 is not 1125.
  static Attribute converted(const Record& record, const Attribute& attribute, std::string_view text) {
    Attribute out = attribute;
    const size_t begin = text.find_first_of("0123456789");
    if (attribute.locale.decimal != Locale::Decimal::comma || begin == std::string_view::npos) return out;
    std::string digits(text.substr(begin, text.find_first_not_of("0123456789.", begin) - begin));
    if (find_text(record, digits)) return out;
    std::ranges::replace(digits, '.', ',');
    if (find_text(record, digits)) out.locale.decimal = Locale::Decimal::point;
    return out;
  }

  /// The value from an answer of its own.
  RowAnswer read_own(const Record& record, const Attribute& attribute, const Answer& answer) const {
    const std::string text = tokenizer_.decode(answer.tokens);
    const bool cut = answer.ending == Ending::length;
    RowAnswer out = read_value(converted(record, attribute, text), text, cut);
    if (attribute.type == ValueType::span) bind_span(record, cut, out);
    check_digits(record, attribute, job_.method.numbers == Numbers::copied, out);
    if (job_.method.cut_values == CutValues::null || !has_sense_when_cut(attribute.type)) drop_cut_value(out);
    note_search(answer, out);
    add_details(answer.logprob, text, out);
    if (job_.output.confidence) {
      out.confidence = confidence_of(out, answer, null_);
      out.null_margin = answer.null_margin;
    }
    return out;
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
  std::map<std::string, std::shared_ptr<const BinParts>> bins_;  ///< by name
};

}  // namespace

std::unique_ptr<Task> make_extract_task(const TaskContext& context, const Schema& schema) {
  return std::make_unique<ExtractTask>(context, schema);
}

}  // namespace sheaf

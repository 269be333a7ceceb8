#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/error.h"
#include "core/task/find_text.h"
#include "core/task/prompt_text.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

constexpr std::string_view kAsk =
    "Answer the questions about the passage, each with a few words copied from the passage. Write a numbered "
    "list with one line for each question, and null where the passage does not say.";
constexpr std::string_view kExtract =
    "Extract the attributes below from the product text. Copy each value from the text as it is written "
    "there. Write a numbered list with one line for each attribute, and null where the text does not mention "
    "it.";

/// The option that a line names by its letter, "B" or "B) Lima", or by its text; none: `options`' size.
size_t find_option(std::string_view line, const std::vector<std::string>& options) {
  const bool alone = line.size() == 1 ||
                     (line.size() > 1 && std::string_view(").: ").find(line[1]) != std::string_view::npos);
  if (!line.empty() && alone && line[0] >= 'A' && static_cast<size_t>(line[0] - 'A') < options.size())
    return static_cast<size_t>(line[0] - 'A');
  return static_cast<size_t>(std::ranges::find(options, line) - options.begin());
}

/// Asks for everything about a record at once. An answer sees those before it, so answers are not those of
/// one prompt per question.
class ListTask : public WordedTask {
 public:
  ListTask(const TaskContext& context, const Schema& schema)
      : WordedTask(context), schema_(schema), asks_(job_.task.kind == TaskKind::ask) {
    if (job_.model.reasoning != Reasoning::none)
      refuse("model.reasoning does not work with method.name {}; use ippd, separate or prefix",
             job_.method.name);
    if (asks_) {
      auto bin = std::make_shared<BinParts>();
      bin->instruction =
          encode_instruction(tokenizer_, instruction_pieces(chat_, instruction(kAsk) + "\n\nPassage:\n"));
      blank_line_ = share_out(tokenizer_, "A text.", "\n\n", "Questions:");
      bin->closing = encode(blank_line_.first);
      bins_[""] = std::move(bin);
    }
  }

  std::string bin_name(const Record& record) const override { return asks_ ? "questions" : record.category; }

  RecordParts parts(const Record& record) override {
    RecordParts parts;
    std::shared_ptr<const BinParts>& bin = bins_[asks_ ? "" : record.category];
    if (!bin) bin = make_bin(category_of(record));
    parts.bin = bin;
    parts.document = encode_part(
        tokenizer_, asks_ ? whole_document(record) + blank_line_.first : record.document + extract_end());
    if (!asks_) return parts;
    std::string text = blank_line_.second + "Questions:\n";
    for (size_t i = 0; i < record.questions.size(); ++i) text += question_text(i, record.questions[i]);
    parts.own_questions.push_back(list_question(text, record.questions.size()));
    return parts;
  }

  Row row(const Record& record, const std::vector<Answer>& answers) const override {
    const std::string text = answers.empty() ? "" : tokenizer_.decode(answers[0].tokens);
    const bool cut = !answers.empty() && answers[0].ending == Ending::length;
    const size_t count = asks_ ? record.questions.size() : category_of(record).attributes.size();
    size_t beyond = 0;
    const std::vector<ListEntry> entries = split_list("1." + text, count, beyond);
    std::vector<RowAnswer> read;
    for (size_t i = 0; i < count; ++i) {
      read.push_back(entries[i].count == 1 ? read_entry(record, i, entries[i].text, cut && entries[i].last)
                                           : RowAnswer{nullptr, trouble(i, entries[i].count)});
      if (asks_ && job_.output.raw) read.back().raw = valid_utf8(entries[i].text);
    }
    if (beyond > 0 && read.back().note.empty())
      read.back().note =
          fmt::format("the model's list reaches number {}, but only {} were asked for", beyond, count);
    return asks_ ? answers_row(record, std::move(read)) : values_row(record, std::move(read), text, answers);
  }

 private:
  std::string extract_end() const { return chat_.turn.empty() ? "\n" : ""; }

  const Category& category_of(const Record& record) const { return schema_.of(record.category); }

  std::shared_ptr<const BinParts> make_bin(const Category& category) const {
    auto bin = std::make_shared<BinParts>();
    std::string text = instruction(kExtract) + "\n\nAttributes:\n";
    for (size_t i = 0; i < category.attributes.size(); ++i)
      text += fmt::format("{}. {}", i + 1, attribute_line(category.attributes[i]));
    bin->instruction = encode_instruction(tokenizer_, instruction_pieces(chat_, text + "\nProduct:\n"));
    bin->closing = encode(extract_end());
    bin->questions.push_back(list_question("", category.attributes.size()));
    return bin;
  }

  std::string question_text(size_t index, const Question& question) const {
    check_options(question);
    if (answer_kind(question, job_.task.answers) == AnswerKind::span && !job_.task.free_spans)
      refuse("{}", span_trouble(context_.wording, job_.method.name));
    std::string text = fmt::format("{}. {}\n", index + 1, question.text);
    for (size_t i = 0; i < question.options.size(); ++i)
      text += "   " + option_letter(i) + ") " + question.options[i] + "\n";
    if (!question.options.empty()) text += "   Answer with the letter of the right option.\n";
    return text;
  }

  /// What stands between the document and the list, and the list's first number.
  QuestionParts list_question(const std::string& text, size_t count) const {
    QuestionParts question;
    question.tokens = encode({{text, false}, {chat_.turn, true}, {"1.", false}});
    if (question.tokens.empty())
      refuse("{}: its tokenizer has no tokens for a numbered list; use another method", job_.model.path);
    question.stop = Stop::text;
    for (size_t i = 0; i < count; ++i)
      question.max_tokens +=
          job_.method.max_value_tokens + static_cast<int32_t>(encode(fmt::format("\n{}.", i + 1)).size());
    return question;
  }

  static std::string trouble(size_t index, int32_t count) {
    return count == 0 ? fmt::format("the list has no number {}", index + 1)
                      : fmt::format("the list has number {} {} times", index + 1, count);
  }

  RowAnswer read_entry(const Record& record, size_t index, const std::string& text, bool cut) const {
    RowAnswer line = read_line(text, cut);
    const auto* found = std::get_if<std::string>(&line.value);
    if (!found) return line;
    if (!asks_) {
      const Attribute& attribute = category_of(record).attributes[index];
      if (is_cut(line) && !has_sense_when_cut(attribute.type)) return {nullptr, line.note};
      RowAnswer value = read_text_value(attribute, *found);
      if (attribute.type == ValueType::span) bind_span(record, cut, value);
      check_digits(record, attribute, job_.method.numbers == Numbers::copied, value);
      if (value.note.empty()) value.note = line.note;
      if (job_.method.cut_values == CutValues::null) drop_cut_value(value);
      return value;
    }
    const std::vector<std::string>& options = record.questions[index].options;
    if (options.empty()) return line;
    const size_t option = find_option(*found, options);
    if (option == options.size()) return {nullptr, "not one of the options"};
    RowAnswer answer{option_letter(option), line.note};
    answer.option = options[option];
    return answer;
  }

  Row values_row(const Record& record, std::vector<RowAnswer> read, const std::string& text,
                 const std::vector<Answer>& answers) const {
    ExtractedValues out{record.category};
    for (size_t i = 0; i < read.size(); ++i)
      out.values.push_back({category_of(record).attributes[i].name, std::move(read[i])});
    if (job_.output.logprobs && !answers.empty()) out.logprob = answers[0].logprob;
    if (job_.output.raw) out.raw = valid_utf8(text);
    return {record.id, std::move(out)};
  }

  const Schema& schema_;
  const bool asks_;
  Between blank_line_;                                           ///< between document and questions
  std::map<std::string, std::shared_ptr<const BinParts>> bins_;  ///< by category; ask: by nothing
};

}  // namespace

std::vector<ListEntry> split_list(std::string_view text, size_t questions, size_t& beyond) {
  std::vector<ListEntry> entries(questions);
  beyond = 0;
  ListEntry* last = nullptr;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t*-")));
    size_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    line.remove_prefix(static_cast<size_t>(end - line.data()));
    if (error != std::errc() || line.empty() ||
        std::string_view(".):").find(line[0]) == std::string_view::npos)
      continue;
    line.remove_prefix(1);
    if (number > questions) beyond = std::max(beyond, number);
    if (number == 0 || number > questions) continue;
    last = &entries[number - 1];
    if (last->count++ == 0) last->text = line;
  }
  if (last) last->last = true;
  return entries;
}

std::unique_ptr<Task> make_list_task(const TaskContext& context, const Schema& schema) {
  return std::make_unique<ListTask>(context, schema);
}

}  // namespace sheaf

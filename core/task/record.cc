#include "core/task/record.h"

#include <fmt/ranges.h>

#include "core/base/error.h"

namespace sheaf {
namespace {

constexpr std::string_view kNotJson = "not valid JSON";  // in whatever way

bool is_decimal_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Whether the number at `at` belongs to a name, as in UTF-8 and int64.
bool in_name(std::string_view text, size_t at) {
  while (at > 0 && is_decimal_digit(text[at - 1])) --at;
  if (at > 0 && text[at - 1] == '-') --at;
  return at > 0 && is_name_letter(text[at - 1]);
}

}  // namespace

std::string whole_document(const Record& record) {
  return record.documents.empty() ? record.document : fmt::format("{}", fmt::join(record.documents, "\n\n"));
}

std::string option_letter(size_t option) {
  return std::string(1, static_cast<char>('A' + option));
}

void check_options(const Question& question) {
  if (question.options.size() > kMostOptions)
    refuse("a question has {} options; give it at most {}, one for each letter", question.options.size(),
           kMostOptions);
}

AnswerKind answer_kind(const Question& question, AnswerKind usual) {
  const bool options = !question.options.empty();
  const AnswerKind kind = question.kind.value_or(options ? AnswerKind::choice : usual);
  if (kind == AnswerKind::choice && !options)
    refuse(
        "a question is to be answered by choice and has no options; give it some, or another kind of answer");
  if (kind != AnswerKind::choice && options)
    refuse("a question with options is to be answered by {}; leave out its options, or set its kind to {}",
           kind == AnswerKind::span ? "a span" : "free text", word_of(AnswerKind::choice));
  return kind;
}

std::string reason_kind(std::string_view reason) {
  if (reason.starts_with(kNotJson)) return std::string(kNotJson);
  std::string kind;
  for (size_t i = 0; i < reason.size(); ++i) {
    if (reason[i] == '"') {
      const size_t end = reason.find('"', i + 1);
      if (end != std::string_view::npos) {
        // A column's name says what is wrong; other quotes are a record's own words.
        kind += kind.ends_with("column ") ? reason.substr(i, end - i + 1) : "\"…\"";
        i = end;
        continue;
      }
    }
    if (!is_decimal_digit(reason[i]) || in_name(reason, i)) {
      kind += reason[i];
    } else {
      kind += 'N';
      while (i + 1 < reason.size() && is_decimal_digit(reason[i + 1])) ++i;
    }
  }
  return kind;
}

}  // namespace sheaf

#include "core/task/reason_kind.h"

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

#include "core/report/find_value.h"

#include <algorithm>
#include <fmt/format.h>

namespace sheaf {
namespace {

char lower_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string folded_ascii(std::string_view text) {
  std::string folded(text);
  std::transform(folded.begin(), folded.end(), folded.begin(), lower_ascii);
  return folded;
}

/// A byte that a word may consist of; every byte of a character that is not ASCII is.
bool in_word(char c) {
  return (c >= '0' && c <= '9') || (lower_ascii(c) >= 'a' && lower_ascii(c) <= 'z') ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool stands_alone(std::string_view text, size_t at, size_t size) {
  const bool joined_before = at > 0 && in_word(text[at - 1]) && in_word(text[at]);
  const size_t end = at + size;
  const bool joined_after = end < text.size() && in_word(text[end - 1]) && in_word(text[end]);
  return !joined_before && !joined_after;
}

size_t find_text(std::string_view text, std::string_view wanted, bool alone) {
  for (size_t at = 0; (at = text.find(wanted, at)) != std::string_view::npos; ++at)
    if (!alone || stands_alone(text, at, wanted.size())) return at;
  return std::string_view::npos;
}

int64_t count_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace

std::vector<std::string> value_texts(const RowValue& value) {
  const auto texts = [](const auto& held) -> std::vector<std::string> {
    using Held = std::decay_t<decltype(held)>;
    if constexpr (std::is_same_v<Held, std::nullptr_t>)
      return {};
    else if constexpr (std::is_same_v<Held, std::vector<std::string>>)
      return held;
    else
      return {fmt::format("{}", held)};
  };
  return std::visit(texts, value);
}

std::optional<RowSpan> find_in_columns(const std::vector<DocumentColumn>& columns, std::string_view text) {
  if (text.empty()) return std::nullopt;
  const std::string folded = folded_ascii(text);
  for (const bool alone : {true, false})
    for (const bool any_case : {false, true})
      for (const DocumentColumn& column : columns) {
        const size_t at = any_case ? find_text(folded_ascii(column.text), folded, alone)
                                   : find_text(column.text, text, alone);
        if (at == std::string::npos) continue;
        const int64_t start = count_points(std::string_view(column.text).substr(0, at));
        return RowSpan{column.name, start, start + count_points(text)};
      }
  return std::nullopt;
}

}  // namespace sheaf

#include "core/task/prompt_template.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/text/printable.h"

namespace sheaf {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

[[noreturn]] void refuse_brace(std::string_view where, std::string_view text, size_t at) {
  constexpr size_t kShown = 20;
  const std::string around = printable_line(text.substr(at, kShown));
  refuse("{}{}the brace at \"{}\" belongs to no field such as {{document}}; write {{{{ or }}}} for a brace",
         where, where.empty() ? "" : ": ", around);
}

}  // namespace

PromptTemplate::PromptTemplate(std::string_view text, std::string_view where) {
  std::string plain;
  const auto end_plain = [&] {
    if (!plain.empty()) pieces_.push_back({std::exchange(plain, {}), false});
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '{' && c != '}') {
      plain += c;
    } else if (i + 1 < text.size() && text[i + 1] == c) {
      plain += c;
      ++i;
    } else {
      const size_t end = c == '{' ? text.find_first_of("{}\n", i + 1) : std::string_view::npos;
      if (end == std::string_view::npos || text[end] != '}' || end == i + 1) refuse_brace(where, text, i);
      end_plain();
      pieces_.push_back({std::string(text.substr(i + 1, end - i - 1)), true});
      i = end;
    }
  }
  end_plain();
}

std::vector<std::string> PromptTemplate::fields() const {
  std::vector<std::string> names;
  for (const Piece& piece : pieces_)
    if (piece.field && std::ranges::find(names, piece.text) == names.end()) names.push_back(piece.text);
  return names;
}

bool PromptTemplate::has(std::string_view field) const {
  return std::ranges::any_of(pieces_, [&](const Piece& piece) { return piece.field && piece.text == field; });
}

std::string PromptTemplate::fill(const std::function<std::string(std::string_view)>& value_of) const {
  std::string out;
  bool emptied = false;  // the line so far is nothing but fields without text
  for (const Piece& piece : pieces_) {
    const bool begins_line = out.empty() || out.back() == '\n';
    if (piece.field) {
      const std::string value = value_of(piece.text);
      emptied = value.empty() && begins_line;
      out += value;
    } else {
      const bool ends_line = piece.text.front() == '\n';
      out += emptied && ends_line ? piece.text.substr(1) : piece.text;
      emptied = false;
    }
  }
  return out;
}

PromptTemplate PromptTemplate::with(std::string_view field, std::string_view value) const {
  PromptTemplate out;
  for (const Piece& piece : pieces_) {
    const bool replaced = piece.field && piece.text == field;
    const std::string_view text = replaced ? value : piece.text;
    const bool is_field = piece.field && !replaced;
    if (!is_field && !out.pieces_.empty() && !out.pieces_.back().field)
      out.pieces_.back().text += text;
    else
      out.pieces_.push_back({std::string(text), is_field});
  }
  return out;
}

std::pair<PromptTemplate, PromptTemplate> PromptTemplate::split(std::string_view field) const {
  std::pair<PromptTemplate, PromptTemplate> parts;
  const auto at =
      std::ranges::find_if(pieces_, [&](const Piece& piece) { return piece.field && piece.text == field; });
  parts.first.pieces_.assign(pieces_.begin(), at);
  if (at != pieces_.end()) parts.second.pieces_.assign(at + 1, pieces_.end());
  return parts;
}

std::string PromptTemplate::first_text() const {
  return pieces_.empty() || pieces_.front().field ? std::string() : pieces_.front().text;
}

std::string PromptTemplate::last_text() const {
  return pieces_.empty() || pieces_.back().field ? std::string() : pieces_.back().text;
}

std::string PromptTemplate::take_first_space() {
  const std::string text = first_text();
  const size_t length = std::min(text.find_first_not_of(kWhiteSpace), text.size());
  if (length == 0) return {};
  pieces_.front().text.erase(0, length);
  if (pieces_.front().text.empty()) pieces_.erase(pieces_.begin());
  return text.substr(0, length);
}

std::string PromptTemplate::take_last_space() {
  const std::string text = last_text();
  const size_t length = text.find_last_not_of(kWhiteSpace) + 1;
  if (length == text.size()) return {};
  pieces_.back().text.resize(length);
  if (pieces_.back().text.empty()) pieces_.pop_back();
  return text.substr(length);
}

bool PromptTemplate::ends_with_space() const {
  const std::string text = last_text();
  return !text.empty() && kWhiteSpace.find(text.back()) != kWhiteSpace.npos;
}

}  // namespace sheaf

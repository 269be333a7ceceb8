#include "core/text/wrap.h"

#include <algorithm>
#include <sstream>

#include "core/text/table.h"
#include "core/text/utf8.h"

namespace sheaf {

std::string one_line(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

std::vector<std::string> wrap_lines(std::string_view text, size_t columns) {
  std::vector<std::string> lines(1);
  size_t used = 0, blank = 0;  // characters of the last line; bytes before its last blank
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (end < text.size() && inside_character(text[end])) ++end;
    if (text[at] == '\n' || (used == columns && text[at] == ' ')) {
      lines.emplace_back();
      used = blank = 0;
      at = end;
      continue;
    }
    if (used == columns) {
      std::string rest = blank > 0 ? lines.back().substr(blank) : "";
      if (blank > 0) lines.back().resize(blank - 1);
      used = count_characters(rest);
      lines.push_back(std::move(rest));
      blank = 0;
    }
    lines.back().append(text, at, end - at);
    ++used;
    if (text[at] == ' ') blank = lines.back().size();
    at = end;
  }
  return lines;
}

std::string wrap_beside(const std::string& term, std::string_view text, size_t indent, size_t columns) {
  constexpr size_t kNarrowest = 20;
  std::string out = term;
  size_t used = count_characters(term);
  if (used > indent || (used == indent && used > 0 && term.back() != ' ')) {
    out += '\n';
    used = 0;
  }
  for (const std::string& line : wrap_lines(text, std::max(columns, indent + kNarrowest) - indent)) {
    if (!line.empty()) out.append(indent - std::min(used, indent), ' ');
    out += line + '\n';
    used = 0;
  }
  return out;
}

std::string side_by_side(std::string_view left, std::string_view right, size_t columns) {
  constexpr size_t kLeastForTwo = 60;
  constexpr std::string_view kBetween = "   ";
  if (columns < kLeastForTwo) {
    std::string out;
    for (const std::string_view text : {left, right})
      for (const std::string& line : wrap_lines(text, columns)) out += line + "\n";
    return out;
  }
  const size_t width = (columns - kBetween.size()) / 2;
  const std::vector<std::string> lefts = wrap_lines(left, width), rights = wrap_lines(right, width);
  std::string out;
  for (size_t i = 0; i < std::max(lefts.size(), rights.size()); ++i) {
    std::string line = i < lefts.size() ? lefts[i] : "";
    if (i < rights.size() && !rights[i].empty()) line = pad_text(line, width).append(kBetween) + rights[i];
    out += line + "\n";
  }
  return out;
}

std::string wrap_layout(const std::string& text, size_t columns) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = std::min(line.find_first_not_of(' '), line.size()), gap = line.find("  ", begin);
    const size_t indent = gap < columns / 2 ? line.find_first_not_of(' ', gap) : begin;
    out += wrap_beside(line.substr(0, indent), std::string_view(line).substr(indent), indent, columns);
  }
  return out;
}

}  // namespace sheaf

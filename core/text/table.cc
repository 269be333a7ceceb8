#include "core/text/table.h"

#include <algorithm>

#include "core/text/printable.h"
#include "core/text/utf8.h"

namespace sheaf {

std::string pad_text(const std::string& text, size_t width, bool right) {
  const std::string blanks(width - std::min(width, count_characters(text)), ' ');
  return right ? blanks + text : text + blanks;
}

std::string TextTable::text() const {
  std::vector<Row> shown = rows;
  std::vector<size_t> widths(rows.empty() ? 0 : rows[0].size());
  for (Row& row : shown)
    for (size_t c = 0; c < row.size(); ++c) {
      row[c] = printable_line(row[c]);
      widths[c] = std::max(widths[c], count_characters(row[c]));
    }
  std::string out;
  for (const Row& row : shown) {
    for (size_t c = 0; c < row.size(); ++c)
      out += (c == 0 ? "" : "  ") + pad_text(row[c], widths[c], is_right(c));
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  }
  return out;
}

std::string TextTable::markdown() const {
  std::string out;
  for (size_t r = 0; r < rows.size(); ++r) {
    out += "|";
    for (const std::string& cell : rows[r]) out += " " + markdown_text(cell) + " |";
    if (r == 0) out += "\n|";
    for (size_t c = 0; r == 0 && c < rows[0].size(); ++c) out += is_right(c) ? "---:|" : "---|";
    out += "\n";
  }
  return out;
}

std::string markdown_text(const std::string& text) {
  std::string out;
  for (const char c : printable_line(text)) {
    if (std::string_view("\\|<[`").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string csv_field(std::string text) {
  // A spreadsheet would compute what begins so.
  if (text.find_first_of("=+-@\t\r") == 0) text.insert(0, "'");
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

}  // namespace sheaf

#pragma once
#include <string>
#include <vector>

namespace sheaf {

/// With blanks up to `width` characters, behind the text or (`right`) before it.
std::string pad_text(const std::string& text, size_t width, bool right = false);

/// A table of texts.
struct TextTable {
  using Row = std::vector<std::string>;
  std::vector<Row> rows;    ///< the first is the head; all have as many cells
  std::vector<bool> right;  ///< columns of numbers; those that are not said stand to the left

  bool is_right(size_t column) const { return column < right.size() && right[column]; }
  /// Columns with two blanks between them. Cells are made printable.
  std::string text() const;
  std::string markdown() const;
};

/// Text in a line of Markdown: no cell, tag, link or code of its own.
std::string markdown_text(const std::string& text);
/// A field of a CSV file that a spreadsheet reads as text, never as a formula.
std::string csv_field(std::string text);

}  // namespace sheaf

#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// A stretch of text that was made of a stretch of an original, up to the next one.
struct TextRun {
  size_t begin = 0;      ///< byte of the text
  int64_t original = 0;  ///< character of the original
  int64_t length = 0;    ///< characters of the original that became one here; 0: each is as it was
};

/// What a reader of a page sees, and where it stands in the HTML.
struct HtmlText {
  std::string text;
  std::vector<TextRun> runs;  ///< ascending; none: the text is the original
};

/// Text without tags, comments, scripts and styles, its entities as the characters that they stand for.
/// Blocks, items and rows of tables are lines; the cells of a row follow each other as "first: second |
/// third". Blanks are one blank each. A text without tags and entities stays as it is, as does a "<" that
/// opens no tag.
HtmlText html_text(std::string_view html);

/// The characters of the original that bytes [begin, end) of the text, which are not empty, were made of.
struct OriginalPlace {
  int64_t start = 0, end = 0;
};
OriginalPlace original_place(const std::vector<TextRun>& runs, std::string_view text, size_t begin,
                             size_t end);

}  // namespace sheaf

#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// Without line breaks and doubled blanks.
std::string one_line(const std::string& text);

/// Lines of at most `columns` characters, broken at blanks where there are some.
std::vector<std::string> wrap_lines(std::string_view text, size_t columns);

/// `term`, and from column `indent` on the wrapped text; below the term where that is too long.
std::string wrap_beside(const std::string& term, std::string_view text, size_t indent, size_t columns);

/// Two texts in columns side by side, the left one half of the width; a line under each other where there is
/// little room.
std::string side_by_side(std::string_view left, std::string_view right, size_t columns);

/// Text that is laid out already, with its long lines wrapped. A line "  name   what it is" continues below
/// "what".
std::string wrap_layout(const std::string& text, size_t columns);

}  // namespace sheaf

#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace sheaf {

/// Controls (C0, DEL, C1), line and paragraph separators, and what reorders text or takes no room in it. The
/// joiners U+200C and U+200D are not among them: scripts and emoji need them.
bool is_hidden(uint32_t point);

/// Text that a terminal shows and does not obey, wherever it comes from. Control characters, marks that turn
/// the direction of text around or hide, and bytes that are not UTF-8 become escapes that a person can read:
/// \x1b, \u009b, \xff. Newlines and tabs stay.
std::string printable_text(std::string_view text);

/// Printable text in one line, for a name that must not look like a line or a row of its own: newlines and
/// tabs become \n and \t too.
std::string printable_line(std::string_view text);

/// Printable JSON of the same value: control and hidden characters that nlohmann's dump() leaves as they are
/// become \u009b and the like.
std::string printable_json(std::string_view json);

}  // namespace sheaf

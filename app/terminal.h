#pragma once
#include <string>

namespace sheaf {

/// Whether lines on standard error can be rewritten: a terminal that is not dumb.
bool can_rewrite_lines();
/// Whether standard error may be coloured: as above, and NO_COLOR is not set (no-color.org).
bool wants_colours();
/// Columns of the terminal on standard error; 80 where it does not say.
int terminal_columns();

/// "sheaf: TEXT" on standard error, its first word red where colours are wanted.
void print_error(const std::string& text);

}  // namespace sheaf

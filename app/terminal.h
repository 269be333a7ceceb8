#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

// Everything that is printed goes through here and app/progress.h: names in model files, corpora and job
// files are not to be trusted, and what they would have a terminal do is shown as an escape instead
// (core/text/printable.h). `tools/lint --doors` sees to it that nobody prints past it.

namespace sheaf {

enum class Stream { out, err };

/// Once, in main: fills the places of standard streams that are closed, so that no file of a run gets their
/// number and with it what is printed. Reading and writing them still fails.
void hold_standard_streams();

/// Whether lines on standard error can be rewritten: a terminal that is not dumb.
bool can_rewrite_lines();
/// Whether standard output is a terminal.
bool output_is_seen();
/// Whether standard error may be coloured: as above, and NO_COLOR is not set (no-color.org).
bool wants_colours();
/// Columns of the terminal on a stream; `otherwise` where it does not say or is none.
int terminal_columns(Stream of = Stream::err, int otherwise = 80);

/// One line: line breaks and control characters in names are escaped.
void print_line(std::string_view text, Stream to = Stream::out);
/// Lines that are laid out already; names in them went through printable_line().
void print_text(std::string_view text, Stream to = Stream::out);
/// JSON and a newline. What is not UTF-8 in it becomes U+FFFD. An indent of -1: in one line.
void print_json(const nlohmann::ordered_json& json, int indent = 2, Stream to = Stream::out);
/// JSON that is written already, and a newline.
void print_json_text(std::string_view text);
/// Text that another program may want: byte for byte, but on a terminal as print_text(). It may be long, so a
/// failure to write it ends the program at once.
void print_data(std::string_view bytes);

/// "sheaf: TEXT" on standard error, in one line.
void print_note(std::string_view text);
/// "sheaf: WARNING: TEXT" on standard error, in red where colours are wanted.
void print_warning(std::string_view text);
/// As a note, its first word red where colours are wanted.
void print_error(std::string_view text);

/// The text as it is, on standard error, by nothing that a signal handler may not do.
void print_in_signal(const char* text);

/// Whether all that was printed on standard output has got there.
bool flush_output();
/// Lets a failure of standard output pass: what matters is elsewhere.
void forgive_output();

}  // namespace sheaf

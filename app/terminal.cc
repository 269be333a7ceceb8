#include "app/terminal.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/text/printable.h"

namespace sheaf {
namespace {

void write(std::string_view bytes, Stream to = Stream::out) {
  // A failure stays on record until flush_output() asks.
  std::fwrite(bytes.data(), 1, bytes.size(), to == Stream::out ? stdout : stderr);
}

}  // namespace

void hold_standard_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF &&
        ::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
      std::_Exit(static_cast<int>(Fault::fatal));
}

bool can_rewrite_lines() {
  const char* kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) && !(kind && std::string_view(kind) == "dumb");
}

bool wants_colours() {
  const char* no = std::getenv("NO_COLOR");
  return can_rewrite_lines() && !(no && *no);
}

int terminal_columns(Stream of, int otherwise) {
  winsize size{};
  const int number = of == Stream::out ? STDOUT_FILENO : STDERR_FILENO;
  return ioctl(number, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

void print_line(std::string_view text, Stream to) {
  write(printable_line(text) + "\n", to);
}

void print_text(std::string_view text, Stream to) {
  write(printable_text(text), to);
}

void print_json(const nlohmann::ordered_json& json, int indent, Stream to) {
  const std::string text = json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  write(printable_json(text) + "\n", to);
}

void print_json_text(std::string_view text) {
  write(printable_json(text) + "\n");
}

bool output_is_seen() {
  static const bool seen = isatty(STDOUT_FILENO);
  return seen;
}

void print_data(std::string_view bytes) {
  output_is_seen() ? print_text(bytes) : write(bytes);
  if (std::ferror(stdout)) fail("standard output: write error");
}

void print_note(std::string_view text) {
  write("sheaf: " + printable_line(text) + "\n", Stream::err);
}

void print_warning(std::string_view text) {
  const std::string line = "sheaf: WARNING: " + printable_line(text);
  write((wants_colours() ? "\033[1;31m" + line + "\033[0m" : line) + "\n", Stream::err);
}

void print_error(std::string_view text) {
  const char* name = wants_colours() ? "\033[1;31msheaf:\033[0m " : "sheaf: ";
  write(name + printable_line(text) + "\n", Stream::err);
}

void print_in_signal(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // nobody is left to tell
}

bool flush_output() {
  return std::fflush(stdout) == 0 && !std::ferror(stdout);
}

void forgive_output() {
  if (!flush_output()) std::clearerr(stdout);
}

}  // namespace sheaf

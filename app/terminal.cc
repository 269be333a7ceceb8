#include "app/terminal.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace sheaf {

bool can_rewrite_lines() {
  const char* kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) && !(kind && std::string_view(kind) == "dumb");
}

bool wants_colours() {
  const char* no = std::getenv("NO_COLOR");
  return can_rewrite_lines() && !(no && *no);
}

int terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void print_error(const std::string& text) {
  std::fprintf(stderr, wants_colours() ? "\033[1;31msheaf:\033[0m %s\n" : "sheaf: %s\n", text.c_str());
}

}  // namespace sheaf

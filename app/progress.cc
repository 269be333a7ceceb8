#include "app/progress.h"

#include <algorithm>

#include "app/terminal.h"
#include "core/text/printable.h"

namespace sheaf {
namespace {

using namespace std::chrono_literals;

constexpr double kBar = 20;  // columns

}  // namespace

std::string progress_bar(const RunState& state, std::optional<int64_t> total) {
  if (!total) return "";
  const auto full = static_cast<size_t>(kBar * share_done(state, *total));
  return "[" + std::string(full, '#') + std::string(static_cast<size_t>(kBar) - full, ' ') + "]";
}

void rewrite_line(const std::string& text, bool last) {
  if (!can_rewrite_lines()) {
    if (last) print_line(text, Stream::err);
    return;
  }
  std::fprintf(stderr, "\r\x1b[K%s%s", printable_line(text).c_str(), last ? "\n" : "");
  std::fflush(stderr);
}

Progress::Progress(bool quiet, std::optional<int64_t> total)
    : shown_(!quiet), terminal_(can_rewrite_lines()), state_{{}, total} {}

Progress::~Progress() {
  close();
}

void Progress::guess(int64_t total) {
  state_.total = total;
  state_.guessed = true;
}

void Progress::update(const RunState& state) {
  const auto now = Clock::now();
  if (!shown_ || now - shown_at_ < (terminal_ ? 200ms : 30000ms)) return;
  shown_at_ = now;
  state_.session = state;
  state_.seconds = std::chrono::duration<double>(now - start_).count();
  const std::string line = progress_line(state_);
  if (terminal_)
    rewrite(state_.total ? progress_bar(state, state_.total) + " " + line : line);
  else
    print_note(line);
}

void Progress::rewrite(const std::string& line) {
  // A line that wraps cannot be rewritten; one that shrinks leaves its end behind unless blanks cover it.
  const std::string shown = line.substr(0, static_cast<size_t>(std::max(1, terminal_columns() - 1)));
  std::fprintf(stderr, "\r%s%s", shown.c_str(),
               std::string(columns_used_ - std::min(columns_used_, shown.size()), ' ').c_str());
  std::fflush(stderr);
  columns_used_ = shown.size();
}

void Progress::close() {
  if (columns_used_ > 0) {
    rewrite("");
    std::fprintf(stderr, "\r");
  }
  shown_ = false;
}

void ShownRun::note(const std::string& text) {
  if (!quiet_) print_note(text);
}

void ShownRun::warn(const std::string& text) {
  print_warning(text);
}

void ShownRun::heading(const std::string& text) {
  if (!quiet_) print_line(text, Stream::err);
}

}  // namespace sheaf

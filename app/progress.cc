#include "app/progress.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>

#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/printable.h"

namespace sheaf {
namespace {

using namespace std::chrono_literals;

std::string duration(double seconds) {
  const auto s = std::llround(std::max(0.0, seconds));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace

std::string progress_line(int64_t records, std::optional<int64_t> total, int64_t rejects, double seconds,
                          double usd_per_second, bool about) {
  const double rate = seconds > 0 ? static_cast<double>(records) / seconds : 0;
  std::string line = total ? fmt::format("{} of {}{} records", records, about ? "about " : "", *total)
                           : fmt::format("{} records", records);
  line += fmt::format(", {:.1f}/s", rate);
  if (total && rate > 0)
    line += fmt::format(", {} left", duration(static_cast<double>(*total - records - rejects) / rate));
  if (rejects > 0) line += fmt::format(", {} rejects", rejects);
  if (usd_per_second > 0) line += fmt::format(", ${:.4f}", usd_per_second * seconds);
  return line;
}

void rewrite_line(const std::string& text, bool last) {
  if (!can_rewrite_lines()) {
    if (last) print_line(text, Stream::err);
    return;
  }
  std::fprintf(stderr, "\r\x1b[K%s%s", printable_line(text).c_str(), last ? "\n" : "");
  std::fflush(stderr);
}

Progress::Progress(bool quiet, std::optional<int64_t> total, const std::string& log)
    : shown_(!quiet), terminal_(can_rewrite_lines()), total_(total) {
  if (log.empty()) return;
  // A pipe that nobody reads must not be waited for, now or when it is full.
  const int file = ::open(log.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file >= 0) log_.reset(::fdopen(file, "a"));
  if (!log_)
    refuse("--log: sheaf cannot write {}: {}; name a file in a writable folder", log, std::strerror(errno));
}

Progress::~Progress() {
  close();
}

void Progress::guess(int64_t total) {
  total_ = total;
  guessed_ = true;
}

void Progress::update(int64_t records, int64_t rejects, double usd_per_second) {
  records_ = records;
  rejects_ = rejects;
  usd_per_second_ = usd_per_second;
  const auto now = Clock::now();
  const bool show = shown_ && now - shown_at_ >= (terminal_ ? 200ms : 30000ms);
  const bool log = log_ && now - logged_at_ >= 10s;
  if (!show && !log) return;
  const std::string line =
      progress_line(records, total_, rejects, std::chrono::duration<double>(now - start_).count(),
                    usd_per_second, guessed_);
  if (show) {
    shown_at_ = now;
    if (terminal_)
      rewrite(line);
    else
      print_note(line);
  }
  if (log) {
    logged_at_ = now;
    write_log(line);
  }
}

void Progress::rewrite(const std::string& line) {
  // A line that wraps cannot be rewritten; one that shrinks leaves its end behind unless blanks cover it.
  const std::string shown = line.substr(0, static_cast<size_t>(std::max(1, terminal_columns() - 1)));
  std::fprintf(stderr, "\r%s%s", shown.c_str(),
               std::string(columns_used_ - std::min(columns_used_, shown.size()), ' ').c_str());
  std::fflush(stderr);
  columns_used_ = shown.size();
}

void Progress::write_log(const std::string& line) {
  // A log that can no longer be written must not stop the job.
  std::fprintf(log_.get(), "%s %s\n", utc_now().c_str(), line.c_str());
  std::fflush(log_.get());
}

void Progress::close() {
  if (columns_used_ > 0) {
    rewrite("");
    std::fprintf(stderr, "\r");
  }
  if (log_)
    write_log(progress_line(records_, total_, rejects_,
                            std::chrono::duration<double>(Clock::now() - start_).count(), usd_per_second_,
                            guessed_));
  shown_ = false;
  log_.reset();
}

void ShownRun::note(const std::string& text) {
  if (!quiet_) print_note(text);
}

void ShownRun::heading(const std::string& text) {
  if (!quiet_) print_line(text, Stream::err);
}

}  // namespace sheaf

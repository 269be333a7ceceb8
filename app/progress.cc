#include "app/progress.h"

#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace sheaf {
namespace {

std::string duration(double seconds) {
  const auto s = std::llround(seconds);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace

Progress::Progress(bool quiet, std::optional<int64_t> total)
    : shown_(!quiet && isatty(STDERR_FILENO)), total_(total) {}

Progress::~Progress() {
  close();
}

void Progress::update(int64_t items, int64_t rejects, double usd_per_second) {
  const auto now = Clock::now();
  if (!shown_ || now - last_ < std::chrono::milliseconds(200)) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(items) / seconds;
  std::string line = total_ ? fmt::format("{} of {} items", items, *total_) : fmt::format("{} items", items);
  line += fmt::format(", {:.1f}/s", rate);
  if (total_ && rate > 0)
    line += fmt::format(", {} left", duration(static_cast<double>(*total_ - items - rejects) / rate));
  if (rejects > 0) line += fmt::format(", {} rejects", rejects);
  if (usd_per_second > 0) line += fmt::format(", ${:.4f}", usd_per_second * seconds);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
}

void Progress::close() {
  if (shown_ && last_ != Clock::time_point{}) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

}  // namespace sheaf

#include "app/progress.h"

#include <algorithm>
#include <cmath>

#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/format.h"
#include "core/text/printable.h"
#include "core/text/spelling.h"

namespace sheaf {
namespace {

using namespace std::chrono_literals;

constexpr double kBar = 20;  // columns

/// Of the records to come, the share that is done or rejected.
double share_done(const RunState& state, int64_t total) {
  return total > 0
             ? std::min(1.0, static_cast<double>(state.records + state.rejects) / static_cast<double>(total))
             : 1;
}

}  // namespace

std::string progress_line(const RunState& state, std::optional<int64_t> total, double seconds, bool about) {
  const auto rate_of = [&](int64_t count) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; };
  const double rate = rate_of(state.records);
  std::string line = counted(state.records, "record");
  if (total)
    line = fmt::format("{} of {}{} ({:.0f} %)", state.records, about ? "about " : "",
                       counted(*total, "record"), std::floor(100 * share_done(state, *total)));
  if (state.records > 0)
    line += fmt::format(", {:.1f}/s", rate);
  else if (state.tokens > 0)
    line += fmt::format(", {} tokens/s", number_text(std::round(rate_of(state.tokens))));
  if (total && rate > 0)
    line += fmt::format(", {} left",
                        duration_text(static_cast<double>(*total - state.records - state.rejects) / rate));
  if (state.rejects > 0) line += ", " + counted(state.rejects, "reject");
  if (state.usd_per_second > 0) line += fmt::format(", ${:.4f}", state.usd_per_second * seconds);
  return line;
}

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

Progress::Progress(bool quiet, std::optional<int64_t> total, RunLog* log, RunMetrics* metrics)
    : shown_(!quiet), terminal_(can_rewrite_lines()), total_(total), log_(log), metrics_(metrics) {}

Progress::~Progress() {
  close();
}

void Progress::guess(int64_t total) {
  total_ = total;
  guessed_ = true;
}

void Progress::update(const RunState& state) {
  state_ = state;
  const auto now = Clock::now();
  const bool show = shown_ && now - shown_at_ >= (terminal_ ? 200ms : 30000ms);
  const bool log = (log_ || metrics_) && now - logged_at_ >= 10s;
  if (!show && !log) return;
  const std::string line =
      progress_line(state, total_, std::chrono::duration<double>(now - start_).count(), guessed_);
  if (show) {
    shown_at_ = now;
    if (terminal_)
      rewrite(total_ ? progress_bar(state, total_) + " " + line : line);
    else
      print_note(line);
  }
  if (log) {
    logged_at_ = now;
    write_log();
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

LoggedState Progress::logged() const {
  return {state_, total_, guessed_, std::chrono::duration<double>(Clock::now() - start_).count()};
}

void Progress::write_log() {
  const LoggedState state = logged();
  if (metrics_) metrics_->update(state);
  if (!log_) return;
  nlohmann::ordered_json fields{{"records", state_.records},
                                {"rejects", state_.rejects},
                                {"tokens", state_.tokens},
                                {"rows_per_second", state.rows_per_second()}};
  if (total_) fields["records_expected"] = *total_;
  if (const auto left = state.seconds_left()) fields["seconds_left"] = *left;
  if (state_.usd_per_second > 0) fields["usd"] = state.usd();
  log_->write("progress", fields, progress_line(state_, total_, state.seconds, guessed_));
}

void Progress::close() {
  if (columns_used_ > 0) {
    rewrite("");
    std::fprintf(stderr, "\r");
  }
  write_log();
  shown_ = false;
  log_ = nullptr;
  metrics_ = nullptr;
}

void ShownRun::note(const std::string& text) {
  if (!quiet_) print_note(text);
  if (log_) log_->write("note", {{"text", text}}, text);
}

void ShownRun::begun(const RunBegin& run) {
  if (metrics_) metrics_->begin(run);
  if (!log_) return;
  nlohmann::ordered_json fields{
      {"job", run.job}, {"output", run.output}, {"backend", run.backend}, {"sheaf", SHEAF_VERSION}};
  if (!run.shard.empty()) fields["shard"] = run.shard;
  if (run.records) fields["records_expected"] = *run.records;
  log_->write("start", fields, fmt::format("start: {} into {}, on {}", run.job, run.output, run.backend));
  if (run.rows + run.rejects == 0) return;
  log_->write(
      "resume", {{"rows", run.rows}, {"rejects", run.rejects}},
      fmt::format("resume: after {} and {}", counted(run.rows, "row"), counted(run.rejects, "reject")));
}

void ShownRun::rejected(const Reject& reject) {
  constexpr int64_t kMostLogged = 100;
  if (!log_ || rejects_logged_ > kMostLogged) return;
  if (++rejects_logged_ > kMostLogged) {
    const std::string text =
        fmt::format("more than {} rejects; the others are in rejects.jsonl only", kMostLogged);
    log_->write("note", {{"text", text}}, text);
    return;
  }
  const std::string place = fmt::format("{}:{}", reject.place.file, reject.place.row);
  log_->write("reject", {{"place", place}, {"reason", reject.reason}},
              fmt::format("reject: {}: {}", place, reject.reason));
}

void ShownRun::warn(const std::string& text) {
  print_warning(text);
  if (log_) log_->write("warning", {{"text", text}}, "WARNING: " + text);
}

void ShownRun::heading(const std::string& text) {
  if (!quiet_) print_line(text, Stream::err);
}

}  // namespace sheaf

#include "app/run_log.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/text/printable.h"
#include "core/text/utf8.h"
#include "io/base/named_output.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

/// A pipe that nobody reads must not be waited for, now or when it is full.
int open_log(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
}

/// A value of a label: what Prometheus escapes.
std::string label(const std::string& text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

double LoggedState::rows_per_second() const {
  return seconds > 0 ? static_cast<double>(session.records) / seconds : 0;
}

std::optional<double> LoggedState::seconds_left() const {
  const double rate = rows_per_second();
  if (!total || rate <= 0) return std::nullopt;
  const int64_t left = *total - session.records - session.rejects;
  return left > 0 ? static_cast<double>(left) / rate : 0;
}

RunLog::RunLog(std::string path, bool json) : path_(std::move(path)), json_(json) {
  file_.emplace(open_log(path_));
  if (file_->number() < 0)
    refuse("--log: sheaf cannot write {}: {}; name a file in a writable folder", path_, std::strerror(errno));
}

void RunLog::reopen_if_moved() {
  struct stat here {
  }, there{};
  const bool same = ::stat(path_.c_str(), &there) == 0 && ::fstat(file_->number(), &here) == 0 &&
                    here.st_ino == there.st_ino && here.st_dev == there.st_dev;
  if (same) return;
  const int fresh = open_log(path_);
  if (fresh >= 0) file_.emplace(fresh);
}

void RunLog::write(const char* event, const ordered_json& fields, const std::string& text) {
  const std::string now = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  std::string line;
  if (json_) {
    ordered_json object{{"time", now}, {"event", event}};
    object.update(fields);
    line = object.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  } else {
    line = fmt::format("{} {}\n", now, printable_line(text));
  }
  const std::lock_guard lock(mutex_);
  reopen_if_moved();
  // One write, so that lines of several processes do not run into each other.
  if (::write(file_->number(), line.data(), line.size()) < 0) return;
}

std::string metrics_text(const RunBegin& run, const LoggedState& state, std::optional<int> exit_code,
                         int64_t started, int64_t now) {
  const std::string labels = fmt::format("{{job_file=\"{}\",output=\"{}\",shard=\"{}\"}}", label(run.job),
                                         label(run.output), label(run.shard));
  std::string text;
  const auto add = [&](const char* name, const char* help, const auto& value) {
    text += fmt::format("# HELP sheaf_run_{0} {1}\n# TYPE sheaf_run_{0} gauge\nsheaf_run_{0}{2} {3}\n", name,
                        help, labels, value);
  };
  add("running", "1 while the run is at work, 0 once it has ended.", exit_code ? 0 : 1);
  if (exit_code) add("exit_code", "How the run ended (docs/reliability.md).", *exit_code);
  add("rows", "Rows done, those of earlier sessions included.", run.rows + state.session.records);
  add("rejects", "Records rejected, those of earlier sessions included.",
      run.rejects + state.session.rejects);
  if (state.total)
    add("records", "Records of the run, rejected ones included.", run.rows + run.rejects + *state.total);
  add("tokens", "Tokens computed in this session.", state.session.tokens);
  add("rows_per_second", "Rows per second in this session.", fmt::format("{:.6g}", state.rows_per_second()));
  if (const auto left = state.seconds_left(); left && !exit_code)
    add("seconds_left", "Seconds until the last row at this rate.", fmt::format("{:.6g}", *left));
  if (state.session.usd_per_second > 0)
    add("usd", "Cost of this session at the job's price.", fmt::format("{:.6g}", state.usd()));
  add("start_time_seconds", "When this session began, in seconds since 1970.", started);
  add("updated_time_seconds", "When this file was written, in seconds since 1970.", now);
  return text;
}

RunMetrics::RunMetrics(const std::string& path, const std::vector<std::string>& inputs)
    : path_(path), started_(std::time(nullptr)) {
  if (!path.ends_with(".prom"))
    refuse("--metrics: {} must end in .prom, or node_exporter passes it over", path);
  NamedOutput(path, inputs);
}

void RunMetrics::begin(const RunBegin& run) {
  const std::lock_guard lock(mutex_);
  run_ = run;
  state_.total = run.records;
  write();
}

void RunMetrics::update(const LoggedState& state) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  write();
}

void RunMetrics::end(int exit_code) {
  const std::lock_guard lock(mutex_);
  exit_code_ = exit_code;
  write();
}

void RunMetrics::write() {
  try {
    NamedOutput(path_).write(metrics_text(run_, state_, exit_code_, started_, std::time(nullptr)));
  } catch (const Error&) {  // a monitor that cannot be told must not stop the job
  }
}

}  // namespace sheaf

#include "io/jobs/run_log.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text/format.h"
#include "core/text/printable.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/base/named_output.h"
#include "io/run_folder/output_place.h"

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

double share_done(const RunState& state, int64_t total) {
  if (total <= 0) return 1;
  return std::min(1.0, static_cast<double>(state.records + state.rejects) / static_cast<double>(total));
}

double SessionState::rows_per_second() const {
  return seconds > 0 ? static_cast<double>(session.records) / seconds : 0;
}

std::optional<double> SessionState::seconds_left() const {
  const double rate = rows_per_second();
  if (!total || rate <= 0) return std::nullopt;
  const int64_t left = *total - session.records - session.rejects;
  return left > 0 ? static_cast<double>(left) / rate : 0;
}

std::string progress_line(const SessionState& state) {
  const auto& [session, total, seconds, guessed] = state;
  std::string line = counted(session.records, "record");
  if (total)
    line = fmt::format("{} of {}{} ({:.0f} %)", session.records, guessed ? "about " : "",
                       counted(*total, "record"), std::floor(100 * share_done(session, *total)));
  if (session.records > 0)
    line += fmt::format(", {:.1f}/s", state.rows_per_second());
  else if (session.tokens > 0)
    line +=
        fmt::format(", {} tokens/s",
                    number_text(std::round(seconds > 0 ? static_cast<double>(session.tokens) / seconds : 0)));
  if (const auto left = state.seconds_left()) line += fmt::format(", {} left", duration_text(*left));
  if (session.rejects > 0) line += ", " + counted(session.rejects, "reject");
  if (session.usd_per_second > 0) line += fmt::format(", ${:.4f}", state.usd());
  return line;
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

std::string metrics_text(const RunBegin& run, const SessionState& state, std::optional<int> exit_code,
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

void RunMetrics::update(const SessionState& state) {
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

LoggedRun::LoggedRun(const LogSettings& settings, const Job& job, RunListener& shown) : shown_(shown) {
  if (!settings.log.empty()) {
    check_log_apart(settings.log, job);
    log_.emplace(settings.log, settings.format == "json");
  }
  if (!settings.metrics.empty()) metrics_.emplace(settings.metrics, paths_read(job));
  known_.job = job.file;
  known_.output = job.output.path;
  if (metrics_) metrics_->expect(known_);
}

void LoggedRun::note(const std::string& text) {
  shown_.note(text);
  write("note", {{"text", text}}, text);
}

void LoggedRun::warn(const std::string& text) {
  shown_.warn(text);
  write("warning", {{"text", text}}, "WARNING: " + text);
}

void LoggedRun::begun(const RunBegin& run) {
  shown_.begun(run);
  if (metrics_) metrics_->begin(run);
  ordered_json fields{
      {"job", run.job}, {"output", run.output}, {"backend", run.backend}, {"sheaf", SHEAF_VERSION}};
  if (!run.shard.empty()) fields["shard"] = run.shard;
  if (run.records) fields["records_expected"] = *run.records;
  write("start", fields, fmt::format("start: {} into {}, on {}", run.job, run.output, run.backend));
  if (run.rows + run.rejects == 0) return;
  write("resume", {{"rows", run.rows}, {"rejects", run.rejects}},
        fmt::format("resume: after {} and {}", counted(run.rows, "row"), counted(run.rejects, "reject")));
}

void LoggedRun::rejected(const Reject& reject) {
  constexpr int64_t kMostLogged = 100;
  shown_.rejected(reject);
  if (rejects_logged_ > kMostLogged) return;
  if (++rejects_logged_ > kMostLogged) {
    const std::string text =
        fmt::format("more than {} rejects; the others are in rejects.jsonl only", kMostLogged);
    write("note", {{"text", text}}, text);
    return;
  }
  const std::string place = fmt::format("{}:{}", reject.place.file, reject.place.row);
  write("reject", {{"place", place}, {"reason", reject.reason}},
        fmt::format("reject: {}: {}", place, reject.reason));
}

void LoggedRun::started(std::optional<int64_t> records) {
  shown_.started(records);
  state_ = {{}, records};
  start_ = written_at_ = Clock::now();
}

void LoggedRun::guess(int64_t records) {
  shown_.guess(records);
  state_.total = records;
  state_.guessed = true;
}

void LoggedRun::step(const RunState& state) {
  shown_.step(state);
  state_.session = state;
  if (Clock::now() - written_at_ < std::chrono::seconds(10)) return;
  written_at_ = Clock::now();
  write_state();
}

void LoggedRun::ended() {
  shown_.ended();
  write_state();
}

void LoggedRun::write_state() {
  state_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  if (metrics_) metrics_->update(state_);
  const RunState& session = state_.session;
  ordered_json fields{{"records", session.records},
                      {"rejects", session.rejects},
                      {"tokens", session.tokens},
                      {"rows_per_second", state_.rows_per_second()}};
  if (state_.total) fields["records_expected"] = *state_.total;
  if (const auto left = state_.seconds_left()) fields["seconds_left"] = *left;
  if (session.usd_per_second > 0) fields["usd"] = state_.usd();
  write("progress", fields, progress_line(state_));
}

void LoggedRun::write_end(int exit_code, ordered_json fields, const std::string& text) {
  fields["exit_code"] = exit_code;
  fields["job"] = known_.job;
  fields["output"] = known_.output;
  write("end", fields, fmt::format("end: exit code {}{}", exit_code, text));
  if (metrics_) metrics_->end(exit_code);
}

void LoggedRun::fail(Fault fault, const std::string& reason) {
  write_end(static_cast<int>(fault), {{"error", reason}}, ": " + reason);
}

void LoggedRun::end(const RunEnd& end) {
  if (!end.interrupted.empty())
    return write_end(end.exit_code, {{"text", end.interrupted}}, ": " + end.interrupted);
  if (!end.report.is_object()) return write_end(end.exit_code, ordered_json::object(), "");
  const ordered_json& report = end.report;
  write_end(end.exit_code,
            {{"rows", report.at("rows")},
             {"rejects", report.at("rejects")},
             {"answers", report.at("answers")},
             {"reused", report.value("reused", int64_t{0})},
             {"tokens", report.at("tokens").at("computed")},
             {"seconds", report.at("seconds").at("total")},
             {"rows_per_second", report.at("rows_per_second")},
             {"usd", report.at("cost").at("usd")},
             {"was_finished", end.was_finished}},
            fmt::format(": {}, {} in {:.1f} s", counted(report.at("rows").get<int64_t>(), "row"),
                        counted(report.at("rejects").get<int64_t>(), "reject"),
                        report.at("seconds").at("total").get<double>()));
}

RunEnd run_logged_job(const Job& asked, const RunSettings& settings, const LogSettings& log,
                      RunListener& shown) {
  LoggedRun logged(log, asked, shown);
  try {
    RunEnd end = run_job(asked, settings, logged);
    logged.end(end);
    return end;
  } catch (const Error& error) {
    logged.fail(error.fault(), error.what());
    throw;
  } catch (const std::exception& error) {
    logged.fail(Fault::fatal, error.what());
    throw;
  }
}

}  // namespace sheaf

#include "io/jobs/run_status.h"

#include <algorithm>
#include <filesystem>
#include <fmt/ranges.h>
#include <set>

#include "core/base/error.h"
#include "core/report/report.h"
#include "core/text/format.h"
#include "core/text/json_reader.h"
#include "core/text/printable.h"
#include "core/text/spelling.h"
#include "core/text/table.h"
#include "io/base/file_layer.h"
#include "io/run_folder/journal.h"
#include "io/run_folder/manifest.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using State = RunStatus::State;

constexpr int64_t kSilence = 90;   // seconds: nine times as long as a run takes between saves
constexpr double kLate = 2;        // times as long as the middle one of its kind
constexpr double kLeastLate = 60;  // seconds
constexpr size_t kFewRuns = 24;    // all of which have a line
constexpr size_t kMissingShown = 8;

bool is_run(const std::string& folder) {
  return file_size(folder + "/journal") ||
         (file_size(folder + "/_SUCCESS") && file_size(folder + "/manifest.json"));
}

int64_t changed_at(const std::string& path) {
  std::error_code failed;
  const auto time = fs::last_write_time(path, failed);
  if (failed) return 0;
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::file_clock::to_sys(time).time_since_epoch())
      .count();
}

void take_shard(const ordered_json& fingerprint, RunStatus& status) {
  const ordered_json shard =
      fingerprint.is_object() ? fingerprint.value("shard", ordered_json()) : ordered_json();
  const auto number = [&](const char* key) -> std::optional<int64_t> {
    const auto at = shard.is_object() ? shard.find(key) : shard.end();
    if (at == shard.end() || !at->is_number_integer() || *at < 0 || *at > INT64_MAX) return std::nullopt;
    return at->get<int64_t>();
  };
  const auto index = number("index"), count = number("count"), first = number("first"), end = number("end");
  if (!index || !count || !first || !end || *index >= *count || *first > *end) return;
  status.shard = *index;
  status.shards = *count;
  status.records = *end - *first;
}

void take_report(const ordered_json& report, RunStatus& status) {
  status.rows_per_second = report.at("rows_per_second").get<double>();
  status.usd = report.at("cost").at("usd").get<double>();
}

/// What the run saved beside its report: when, where, and how many records it has.
void take_saved(const std::string& text, RunStatus& status, bool& ended) {
  const ordered_json saved = read_json<ordered_json>(text);
  const auto whole = [&](const char* key) {
    const auto at = saved.find(key);
    return at != saved.end() && at->is_number_integer() && *at >= 0 && *at <= INT64_MAX ? at->get<int64_t>()
                                                                                        : 0;
  };
  if (const int64_t records = whole("records"); records > 0) status.records = records;
  status.updated = std::max(status.updated, whole("updated"));
  ended = saved.value("ended", ordered_json()) == true;
  const ordered_json host = saved.value("host", ordered_json());
  if (host.is_string())
    status.where = fmt::format("{}, process {}", printable_line(host.get<std::string>()), whole("pid"));
}

RunStatus unfinished_status(const std::string& folder, int64_t now) {
  RunStatus status{.folder = folder};
  const auto text = read_whole(folder + "/journal", kLargestJournal);
  if (!text) refuse("{}: the folder has no run; name the output folder of a run", folder);
  const auto run = read_run(read_journal(*text));
  if (!run) refuse("{}/journal: a line was not written by sheaf; {}", folder, kRestart);
  status.rows = run->places.back().rows;
  status.rejects = run->places.back().rejects;
  take_shard(run->fingerprint, status);
  status.updated = changed_at(folder + "/journal");
  bool ended = false;
  if (const auto saved = read_whole(folder + "/progress.json")) {
    const int64_t journal = status.updated;
    take_saved(*saved, status, ended);
    // A session that was begun since has touched the journal.
    ended = ended && journal <= status.updated;
    take_report(read_saved_report(*saved, folder + "/progress.json").report, status);
  }
  status.state = ended ? State::stopped : now - status.updated <= kSilence ? State::running : State::silent;
  return status;
}

RunStatus finished_status(const std::string& folder) {
  RunStatus status{.folder = folder, .state = State::finished};
  const Manifest manifest = read_manifest(folder, kRestart);
  status.rows = manifest.rows;
  status.rejects = manifest.rejects;
  status.updated = changed_at(folder + "/_SUCCESS");
  take_shard(manifest.fingerprint, status);
  status.records = manifest.rows + manifest.rejects;
  if (file_size(folder + "/report.json")) take_report(read_report_file(folder + "/report.json"), status);
  return status;
}

/// Folders of runs right in a folder.
std::vector<std::string> runs_in(const std::string& folder) {
  std::vector<std::string> runs;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed))
    if (entry.is_directory(failed) && is_run(entry.path().string())) runs.push_back(entry.path().string());
  std::ranges::sort(runs);
  return runs;
}

/// Marks what a person should look at: parts that end long after the others, and those that do not end.
void find_late(std::vector<RunStatus>& runs) {
  std::vector<double> left;
  for (const RunStatus& run : runs)
    if (run.state == State::running && run.seconds_left()) left.push_back(*run.seconds_left());
  double middle = 0;
  if (left.size() >= 3) {
    std::ranges::nth_element(left, left.begin() + std::ssize(left) / 2);
    middle = left[left.size() / 2];
  }
  for (RunStatus& run : runs) {
    const bool slow = left.size() >= 3 && run.state == State::running && run.seconds_left() &&
                      *run.seconds_left() > std::max(kLate * middle, kLeastLate);
    run.late = slow || run.state == State::silent || run.state == State::stopped;
  }
}

std::string late_text(const RunStatus& run, int64_t now) {
  if (!run.trouble.empty()) return run.trouble;
  if (run.state == State::silent)
    return fmt::format("nothing for {}{}", duration_text(static_cast<double>(now - run.updated)),
                       run.where.empty() ? "" : " (" + run.where + ")");
  if (run.state == State::stopped) return "rerun its command to resume";
  return run.late ? "late" : "";
}

std::string of_records(int64_t done, std::optional<double> records) {
  if (!records || *records <= 0) return "";
  return fmt::format(" of {:.0f} records ({:.1f} %)", *records,
                     std::min(100.0, std::floor(1000 * static_cast<double>(done) / *records) / 10));
}

template <class Number>
Number sum_of(const std::vector<RunStatus>& runs, Number RunStatus::*member) {
  Number sum{};
  for (const RunStatus& run : runs) sum += run.*member;
  return sum;
}

}  // namespace

int64_t RunStatus::left() const {
  return records ? std::max<int64_t>(0, *records - rows - rejects) : 0;
}

std::optional<double> RunStatus::seconds_left() const {
  if (state == State::finished) return 0;
  if (!records || rows_per_second <= 0) return std::nullopt;
  return static_cast<double>(left()) / rows_per_second;
}

const char* state_word(RunStatus::State state) {
  switch (state) {
    case State::running:
      return "running";
    case State::silent:
      return "silent";
    case State::stopped:
      return "stopped";
    case State::finished:
      break;
  }
  return "finished";
}

RunStatus run_status(const std::string& folder, int64_t now) {
  return file_size(folder + "/_SUCCESS") ? finished_status(folder) : unfinished_status(folder, now);
}

/// Of one of many: a damaged one does not hide the others.
static RunStatus any_status(const std::string& folder, int64_t now) {
  try {
    return run_status(folder, now);
  } catch (const Error& error) {
    RunStatus status{.folder = folder};
    status.trouble = error.what();
    return status;
  }
}

StatusTable read_status(const std::vector<std::string>& paths, int64_t now) {
  StatusTable table;
  table.now = now;
  bool parent = false;
  std::set<std::string> known;
  const auto is_new = [&](const std::string& run) { return known.insert(real_path(run)).second; };
  for (const std::string& path : paths) {
    if (std::error_code ignored; !fs::is_directory(path, ignored))
      refuse(
          "{}: no such folder; name the output folder of a run, or the folder that holds the parts of a job",
          path);
    if (is_run(path)) {
      if (is_new(path)) table.runs.push_back(run_status(path, now));
      continue;
    }
    const std::vector<std::string> found = runs_in(path);
    if (found.empty())
      refuse("{}: neither a run nor a folder of runs; name the output folder of a run", path);
    parent = true;
    for (const std::string& run : found)
      if (is_new(run)) table.runs.push_back(any_status(run, now));
  }
  std::set<int64_t> counts, seen;
  for (const RunStatus& run : table.runs)
    if (run.shards > 0) counts.insert(run.shards), seen.insert(run.shard);
  if (counts.size() == 1) {
    // Beside its parts, a whole run is their merge.
    if (parent)
      std::erase_if(table.runs, [](const RunStatus& run) { return run.shards == 0 && run.trouble.empty(); });
    for (int64_t part = 0; part < *counts.begin(); ++part)
      if (!seen.contains(part)) table.missing.push_back(part);
    std::ranges::stable_sort(table.runs, {}, &RunStatus::shard);
  }
  find_late(table.runs);
  return table;
}

int64_t StatusTable::rows() const {
  return sum_of(runs, &RunStatus::rows);
}

int64_t StatusTable::rejects() const {
  return sum_of(runs, &RunStatus::rejects);
}

double StatusTable::usd() const {
  return sum_of(runs, &RunStatus::usd);
}

double StatusTable::rows_per_second() const {
  double sum = 0;
  for (const RunStatus& run : runs)
    if (run.state == State::running) sum += run.rows_per_second;
  return sum;
}

std::optional<double> StatusTable::records() const {
  double sum = 0;
  for (const RunStatus& run : runs) {
    if (!run.records) return std::nullopt;
    sum += static_cast<double>(*run.records);
  }
  const double mean = runs.empty() ? 0 : sum / static_cast<double>(runs.size());
  return sum + mean * static_cast<double>(missing.size());
}

std::optional<double> StatusTable::seconds_left() const {
  const auto all = records();
  if (!all) return std::nullopt;
  const double left = *all - static_cast<double>(rows() + rejects());
  if (left <= 0) return 0;
  return rows_per_second() > 0 ? std::optional(left / rows_per_second()) : std::nullopt;
}

std::string status_text(const StatusTable& table, bool all) {
  std::string text;
  if (table.runs.size() + table.missing.size() > 1) {
    std::vector<std::string> counts;
    for (const State state : {State::finished, State::running, State::stopped, State::silent})
      if (const auto count = std::ranges::count(table.runs, state, &RunStatus::state); count > 0)
        counts.push_back(fmt::format("{} {}", count, state_word(state)));
    if (!table.missing.empty()) {
      std::vector<int64_t> first(table.missing.begin(), table.missing.begin() + std::ssize(table.missing) -
                                                            std::max<int64_t>(0, std::ssize(table.missing) -
                                                                                     int64_t{kMissingShown}));
      counts.push_back(fmt::format("{} not begun ({}{})", table.missing.size(), fmt::join(first, ", "),
                                   table.missing.size() > kMissingShown ? ", …" : ""));
    }
    text += fmt::format("{}   {}: {}\n", table.runs[0].shards > 0 ? "parts" : "runs ",
                        table.runs.size() + table.missing.size(), fmt::join(counts, ", "));
  }
  text += fmt::format("rows    {}{}, {}\n", table.rows(),
                      of_records(table.rows() + table.rejects(), table.records()),
                      counted(table.rejects(), "reject"));
  const bool at_work = std::ranges::count(table.runs, State::running, &RunStatus::state) > 0;
  if (at_work)
    text += fmt::format("rate    {:.2f} rows/s{}\n", table.rows_per_second(),
                        table.seconds_left() ? ", " + duration_text(*table.seconds_left()) + " left" : "");
  if (table.usd() > 0) {
    const auto records = table.records();
    const double done = static_cast<double>(table.rows() + table.rejects());
    text += fmt::format("cost    ${:.4f} so far{}\n", table.usd(),
                        records && done > 0 && done < *records
                            ? fmt::format(", about ${:.4f} in all", table.usd() / done * *records)
                            : "");
  }
  TextTable lines;
  lines.right = {false, false, true, true, true, true, true, true};
  lines.rows.push_back({"", "state", "rows", "records", "rejects", "rows/s", "left", "cost", ""});
  for (const RunStatus& run : table.runs) {
    if (!all && table.runs.size() > kFewRuns && run.state == State::finished) continue;
    const bool live = run.state == State::running;
    lines.rows.push_back({printable_line(run.folder), state_word(run.state), std::to_string(run.rows),
                          run.records ? std::to_string(*run.records) : "?", std::to_string(run.rejects),
                          fmt::format("{:.2f}", run.rows_per_second),
                          live && run.seconds_left() ? duration_text(*run.seconds_left()) : "",
                          run.usd > 0 ? fmt::format("${:.4f}", run.usd) : "", late_text(run, table.now)});
  }
  if (lines.rows.size() > 1) text += lines.text();
  return text;
}

ordered_json status_json(const StatusTable& table) {
  const auto or_null = [](const auto& value) { return value ? ordered_json(*value) : ordered_json(); };
  ordered_json json{{"rows", table.rows()},
                    {"rejects", table.rejects()},
                    {"records", or_null(table.records())},
                    {"rows_per_second", table.rows_per_second()},
                    {"seconds_left", or_null(table.seconds_left())},
                    {"usd", table.usd()},
                    {"parts_not_begun", table.missing},
                    {"runs", ordered_json::array()}};
  for (const RunStatus& run : table.runs) {
    ordered_json line{{"folder", run.folder},
                      {"state", state_word(run.state)},
                      {"rows", run.rows},
                      {"rejects", run.rejects},
                      {"records", or_null(run.records)},
                      {"rows_per_second", run.rows_per_second},
                      {"seconds_left", or_null(run.seconds_left())},
                      {"usd", run.usd},
                      {"updated", run.updated},
                      {"late", run.late}};
    if (run.shards > 0) line["shard"] = fmt::format("{}/{}", run.shard, run.shards);
    if (!run.where.empty()) line["where"] = run.where;
    if (!run.trouble.empty()) line["trouble"] = run.trouble;
    json["runs"].push_back(std::move(line));
  }
  return json;
}

}  // namespace sheaf

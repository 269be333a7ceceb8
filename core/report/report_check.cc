#include <cmath>

#include "core/base/error.h"
#include "core/base/histogram.h"
#include "core/report/report.h"
#include "core/report/report_fields.h"
#include "core/text/json_reader.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;
using Kind = ReportField::Kind;

// Far above what a run can count, far below where sums of many reports overflow.
constexpr double kMostCounted = 1e15;
constexpr double kMostSeconds = 1e12;

class ReportChecker {
 public:
  explicit ReportChecker(const std::string& source) : source_(source) {}

  void check(const ordered_json& report) {
    check_version(report);
    for (const ReportField& field : report_fields()) check_field(report, field);
    if (report.contains("settings"))  // earlier reports have none
      inside(report, "settings", [](const ordered_json&) {});
    if (report.contains("changed_settings")) list(report, "changed_settings");
    check_figures(report, "device_seconds", Kind::number, {});
    check_figures(report, "endings", Kind::count, {ending_name(Ending::length)});
    check_figures(report, "questions", Kind::count, {"asked", "answered", "noted"});
    const ReportLists& lists = report_lists();
    check_member(report, lists.engines);
    inside(report, "throughput", [&](const ordered_json& throughput) { check_throughput(throughput); });
    inside(report, "per_step", [&](const ordered_json& steps) {
      for (const char* key : {"tokens", "slots"}) check_histogram(steps, key);
      if (has(report, "/experts") || steps.contains("expert_tokens")) check_histogram(steps, "expert_tokens");
    });
    check_histogram(report, "value_tokens");
    for (const ReportMember* each : {&lists.values, &lists.sample, &lists.reject_reasons})
      check_member(report, *each, true);
  }

 private:
  [[noreturn]] void refuse_at(const std::string& key, const char* what) const {
    refuse("{}: the report is damaged: {}{} is {}; run the job again with --restart", source_, place_, key,
           what);
  }

  void check_version(const ordered_json& report) const {
    const auto version = report.is_object() ? report.find("version") : report.end();
    if (!report.is_object() || version == report.end() || !version->is_number_integer())
      refuse("{}: this is not a report of sheaf: it has no version; run the job again with --restart",
             source_);
    if (*version != kReportVersion)
      refuse("{}: the report has version {}, but this sheaf reads version {}; use the sheaf that wrote it",
             source_, version->dump(), kReportVersion);
  }

  void check_field(const ordered_json& report, const ReportField& field) {
    if (field.path.empty()) return;
    const std::string path(field.path.substr(1));
    const size_t slash = path.find('/');
    place_.clear();
    if (slash != std::string::npos) {
      const std::string group = path.substr(0, slash);
      const auto found = report.find(group);
      if (found == report.end() && field.always) refuse_at(group, "missing");
      if (found != report.end() && !found->is_object() && !found->is_null())
        refuse_at(group, "not an object");
      place_ = group + ".";
    }
    const std::string key = path.substr(slash + 1);
    if (!report.contains(field.pointer())) {
      const bool needed = field.always || (!field.with.empty() && has(report, field.with));
      if (needed) refuse_at(key, "missing");
    } else {
      check_kind(report.at(field.pointer()), field.kind, key);
    }
    place_.clear();
  }

  static bool has(const ordered_json& report, std::string_view path) {
    const ordered_json::json_pointer place{std::string(path)};
    return report.contains(place) && !report.at(place).is_null();
  }

  void check_kind(const ordered_json& value, Kind kind, const std::string& key) const {
    const bool is_whole = value.is_number_integer() && std::abs(value.get<double>()) <= kMostCounted;
    if (kind == Kind::text && !value.is_string()) refuse_at(key, "not a text");
    if (kind == Kind::text_or_null && !value.is_string() && !value.is_null()) refuse_at(key, "not a text");
    if (kind == Kind::count && (!is_whole || value < 0)) refuse_at(key, "not a count");
    if (kind == Kind::whole && !is_whole) refuse_at(key, "not a whole number");
    if (kind == Kind::number &&
        (!value.is_number() || !(value.get<double>() >= 0) || value.get<double>() > kMostCounted))
      refuse_at(key, "not a number of 0 or more");
  }

  const ordered_json& member(const ordered_json& from, const std::string& key) const {
    const auto at = from.find(key);
    if (at == from.end()) refuse_at(key, "missing");
    return *at;
  }

  void inside(const ordered_json& from, const std::string& key, auto&& check) {
    const ordered_json& found = member(from, key);
    if (!found.is_object()) refuse_at(key, "not an object");
    const size_t before = place_.size();
    place_ += key + ".";
    check(found);
    place_.resize(before);
  }

  const ordered_json& list(const ordered_json& from, const std::string& key) const {
    const ordered_json& found = member(from, key);
    if (!found.is_array()) refuse_at(key, "not a list");
    return found;
  }

  void check_member(const ordered_json& from, const ReportMember& about, bool outermost = false) {
    if (!about.always && !from.contains(about.key)) return;
    if (about.kind != Kind::list) return check_kind(member(from, about.key), about.kind, about.key);
    const ordered_json& entries = list(from, about.key);
    if (outermost) place_ = about.key + ".";
    for (const ordered_json& entry : entries) {
      if (!entry.is_object()) refuse_at(outermost ? "entry" : about.key + " entry", "not an object");
      for (const ReportMember& each : about.entries) check_member(entry, each);
    }
    if (outermost) place_.clear();
  }

  /// An object of figures, some of which must be there.
  void check_figures(const ordered_json& from, const char* key, Kind kind,
                     std::initializer_list<const char*> needed) {
    inside(from, key, [&](const ordered_json& all) {
      for (const char* each : needed) member(all, each);
      for (const auto& [name, value] : all.items()) check_kind(value, kind, name);
    });
  }

  void check_series(const ordered_json& from, const char* key, size_t most) const {
    const ordered_json& series = list(from, key);
    if (series.size() > most) refuse_at(key, "too long");
    for (const ordered_json& value : series) check_kind(value, Kind::count, key);
  }

  void check_throughput(const ordered_json& throughput) const {
    for (const char* key : {"seconds", "point_seconds"}) {
      check_kind(member(throughput, key), Kind::number, key);
      if (throughput[key] > kMostSeconds) refuse_at(key, "too large");
    }
    for (const auto& [key, count] : Throughput::kCounts) {
      check_series(throughput, key, Throughput::kPoints);
      if (throughput[key].size() != throughput["steps"].size()) refuse_at(key, "not as long as steps");
    }
  }

  void check_histogram(const ordered_json& from, const char* key) {
    inside(from, key, [&](const ordered_json& histogram) {
      for (const char* count : {"count", "largest", "bin_width"})
        check_kind(member(histogram, count), Kind::count, count);
      check_kind(member(histogram, "mean"), Kind::number, "mean");
      if (histogram["bin_width"] < 1) refuse_at("bin_width", "0");
      check_series(histogram, "bins", Histogram::kBins);
    });
  }

  const std::string& source_;
  std::string place_;  // of the object being checked: "tokens."
};

ordered_json parse_report(const std::string& text, const std::string& source) {
  std::string trouble;
  ordered_json json = read_json<ordered_json>(text, {.unique_keys = true}, &trouble);
  if (!trouble.empty()) refuse("{}: {}; run the job again with --restart", source, trouble);
  return json;
}

/// Version 2 said "items" for rows.
void rename_items(ordered_json& report) {
  const auto rename = [](ordered_json& object, const char* old, const char* now) {
    if (!object.is_object() || !object.contains(old)) return;
    object[now] = std::move(object[old]);
    object.erase(old);
  };
  rename(report, "items", "rows");
  rename(report, "items_per_second", "rows_per_second");
  rename(report["cost"], "usd_per_1000_items", "usd_per_1000_rows");
  rename(report["throughput"], "items", "rows");
  for (ordered_json& category : report["values"]) rename(category, "items", "rows");
  for (ordered_json& reason : report["reject_reasons"]) rename(reason, "rows", "records");
}

/// Up to version 3, `rows` and `rejects` left out what a killed session had written but not counted.
void include_uncounted(ordered_json& report) {
  for (const std::string key : {"rows", "rejects"}) {
    ordered_json& all = report[key];
    const ordered_json& missed = report[key + "_uncounted"];
    const auto is_count = [](const ordered_json& each) {
      return each.is_number_integer() && each >= 0 && each.get<double>() <= kMostCounted;
    };
    if (is_count(all) && is_count(missed)) all = all.get<int64_t>() + missed.get<int64_t>();
  }
}

}  // namespace

void update_report(ordered_json& report) {
  if (!report.is_object()) return;
  const ordered_json version = report.value("version", ordered_json());
  if (version != 2 && version != 3) return;
  if (version == 2) rename_items(report);
  include_uncounted(report);
  report["version"] = kReportVersion;
}

void check_report(const ordered_json& report, const std::string& source) {
  ReportChecker(source).check(report);
}

ordered_json read_report(const std::string& text, const std::string& source) {
  ordered_json report = parse_report(text, source);
  update_report(report);
  check_report(report, source);
  return report;
}

SavedReport read_saved_report(const std::string& text, const std::string& source) {
  ordered_json json = parse_report(text, source);
  SavedReport saved;
  for (const auto& [key, count] : {std::pair("rows", &saved.rows), {"rejects", &saved.rejects}}) {
    const auto at = json.is_object() ? json.find(key) : json.end();
    if (at == json.end() || !at->is_number_integer() || *at < 0 || *at > INT64_MAX)
      refuse("{}: {} is not a count; run the job again with --restart", source, key);
    *count = at->get<int64_t>();
  }
  if (!json.contains("report")) refuse("{}: report is missing; run the job again with --restart", source);
  saved.report = std::move(json["report"]);
  update_report(saved.report);
  check_report(saved.report, source);
  return saved;
}

}  // namespace sheaf

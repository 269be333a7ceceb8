#include "core/report/report_check.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/histogram.h"
#include "core/report/report_fields.h"
#include "core/report/throughput.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

// Far above what a run can count, far below where sums of many reports overflow.
constexpr double kMostCounted = 1e15;
constexpr double kMostSeconds = 1e12;

class ReportChecker {
 public:
  explicit ReportChecker(const std::string& source) : source_(source) {}

  void check(const ordered_json& report) {
    check_version(report);
    for (const ReportField& field : report_fields()) check_field(report, field);
    if (report.contains("settings")) {  // earlier reports have none
      object(report, "settings");
      leave();
    }
    if (report.contains("changed_settings")) list(report, "changed_settings");
    numbers_of(report, "device_seconds", {});
    counts_of(report, "endings", {ending_name(Ending::length)});
    counts_of(report, "questions", {"asked", "answered", "noted"});
    if (report.contains("engines")) check_engines(list(report, "engines"));
    check_throughput(object(report, "throughput"));
    leave();
    object(report, "per_step");
    for (const char* key : {"tokens", "slots"}) check_histogram(report["per_step"], key);
    leave();
    check_histogram(report, "value_tokens");
    check_values(list(report, "values"));
    if (report.contains("sample")) check_sample(list(report, "sample"));  // earlier reports have none
    check_reasons(list(report, "reject_reasons"));
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

  void check_kind(const ordered_json& value, ReportField::Kind kind, const std::string& key) const {
    switch (kind) {
      case ReportField::Kind::text:
        if (!value.is_string()) refuse_at(key, "not a text");
        return;
      case ReportField::Kind::count:
        return check_count(value, key);
      case ReportField::Kind::whole:
        if (!is_whole(value)) refuse_at(key, "not a whole number");
        return;
      case ReportField::Kind::number:
        return check_number(value, key);
    }
  }

  const ordered_json& member(const ordered_json& from, const char* key) const {
    const auto at = from.find(key);
    if (at == from.end()) refuse_at(key, "missing");
    return *at;
  }

  /// Enters it; leave() goes back.
  const ordered_json& object(const ordered_json& from, const char* key) {
    const ordered_json& found = member(from, key);
    if (!found.is_object()) refuse_at(key, "not an object");
    before_.push_back(place_.size());
    place_ += std::string(key) + ".";
    return found;
  }

  void leave() {
    place_.resize(before_.back());
    before_.pop_back();
  }

  const ordered_json& list(const ordered_json& from, const char* key) const {
    const ordered_json& found = member(from, key);
    if (!found.is_array()) refuse_at(key, "not a list");
    return found;
  }

  static bool is_whole(const ordered_json& value) {
    return value.is_number_integer() && std::abs(value.get<double>()) <= kMostCounted;
  }

  void check_count(const ordered_json& value, const std::string& key) const {
    if (!is_whole(value) || value < 0) refuse_at(key, "not a count");
  }

  void check_number(const ordered_json& value, const std::string& key) const {
    if (!value.is_number() || !(value.get<double>() >= 0) || value.get<double>() > kMostCounted)
      refuse_at(key, "not a number of 0 or more");
  }

  void texts(const ordered_json& from, std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (!member(from, key).is_string()) refuse_at(key, "not a text");
  }

  void counts(const ordered_json& from, std::initializer_list<const char*> keys) const {
    for (const char* key : keys) check_count(member(from, key), key);
  }

  void numbers(const ordered_json& from, std::initializer_list<const char*> keys) const {
    for (const char* key : keys) check_number(member(from, key), key);
  }

  /// An object of numbers, some of which must be there.
  void numbers_of(const ordered_json& from, const char* key, std::initializer_list<const char*> keys) {
    const ordered_json& all = object(from, key);
    numbers(all, keys);
    for (const auto& [name, value] : all.items()) check_number(value, name);
    leave();
  }

  void counts_of(const ordered_json& from, const char* key, std::initializer_list<const char*> keys) {
    const ordered_json& all = object(from, key);
    counts(all, keys);
    for (const auto& [name, value] : all.items()) check_count(value, name);
    leave();
  }

  void check_series(const ordered_json& from, const char* key, size_t most) const {
    const ordered_json& series = list(from, key);
    if (series.size() > most) refuse_at(key, "too long");
    for (const ordered_json& value : series) check_count(value, key);
  }

  void check_engines(const ordered_json& engines) const {
    for (const ordered_json& engine : engines) {
      if (!engine.is_object()) refuse_at("engines entry", "not an object");
      texts(engine, {"name"});
      counts(engine, {"answers", "tokens", "steps"});
      numbers(engine, {"decode_seconds", "idle_seconds"});
      if (engine.contains("failed")) texts(engine, {"failed"});
    }
  }

  void check_throughput(const ordered_json& throughput) const {
    for (const char* key : {"seconds", "point_seconds"}) {
      check_number(member(throughput, key), key);
      if (throughput[key] > kMostSeconds) refuse_at(key, "too large");
    }
    for (const char* key : {"steps", "rows", "tokens", "answer_tokens"}) {
      check_series(throughput, key, Throughput::kPoints);
      if (throughput[key].size() != throughput["steps"].size()) refuse_at(key, "not as long as steps");
    }
  }

  void check_histogram(const ordered_json& from, const char* key) {
    const ordered_json& histogram = object(from, key);
    counts(histogram, {"count", "largest", "bin_width"});
    numbers(histogram, {"mean"});
    if (histogram["bin_width"] < 1) refuse_at("bin_width", "0");
    check_series(histogram, "bins", Histogram::kBins);
    leave();
  }

  void check_values(const ordered_json& values) {
    place_ = "values.";
    for (const ordered_json& category : values) {
      if (!category.is_object()) refuse_at("entry", "not an object");
      texts(category, {"category"});
      counts(category, {"rows"});
      for (const ordered_json& attribute : list(category, "attributes")) {
        if (!attribute.is_object()) refuse_at("attributes entry", "not an object");
        texts(attribute, {"name"});
        counts(attribute, {"asked", "found", "noted"});
        for (const char* key : {"cut", "literal"})  // earlier reports have none
          if (attribute.contains(key)) counts(attribute, {key});
        if (!attribute.contains("common")) continue;
        for (const ordered_json& value : list(attribute, "common")) {
          if (!value.is_object()) refuse_at("common entry", "not an object");
          texts(value, {"value"});
          counts(value, {"rows"});
        }
      }
    }
    place_.clear();
  }

  void check_sample(const ordered_json& sample) {
    place_ = "sample.";
    for (const ordered_json& row : sample) {
      if (!row.is_object()) refuse_at("entry", "not an object");
      texts(row, {"id", "category", "text"});
      for (const ordered_json& value : list(row, "values")) {
        if (!value.is_object()) refuse_at("values entry", "not an object");
        texts(value, {"name", "note"});
        if (!member(value, "value").is_null()) texts(value, {"value"});
      }
    }
    place_.clear();
  }

  void check_reasons(const ordered_json& reasons) {
    place_ = "reject_reasons.";
    for (const ordered_json& reason : reasons) {
      if (!reason.is_object()) refuse_at("entry", "not an object");
      texts(reason, {"kind", "example"});
      if (reason.contains("place")) texts(reason, {"place"});  // earlier reports have none
      counts(reason, {"records"});
    }
    place_.clear();
  }

  const std::string& source_;
  std::string place_;           // of the object being checked: "tokens."
  std::vector<size_t> before_;  // its lengths outside
};

}  // namespace

void update_report(ordered_json& report) {
  if (!report.is_object() || report.value("version", ordered_json()) != 2) return;
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
  report["version"] = kReportVersion;
}

void check_report(const ordered_json& report, const std::string& source) {
  ReportChecker(source).check(report);
}

}  // namespace sheaf

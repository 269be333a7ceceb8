#include "io/run_folder/report_file.h"

#include "core/base/error.h"
#include "core/report/report_check.h"
#include "core/text/json_reader.h"
#include "io/base/file_layer.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

ordered_json parse_report(const std::string& text, const std::string& source) {
  std::string trouble;
  ordered_json json = read_json<ordered_json>(text, {.unique_keys = true}, &trouble);
  if (!trouble.empty()) refuse("{}: {}; run the job again with --restart", source, trouble);
  return json;
}

}  // namespace

ordered_json read_report_file(const std::string& path) {
  const auto text = read_whole(path);
  if (!text) refuse("{}: no such file", path);
  ordered_json report = parse_report(*text, path);
  update_report(report);
  check_report(report, path);
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

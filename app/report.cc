#include "core/report.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <memory>

#include "app/commands.h"
#include "core/compare_reports.h"
#include "core/error.h"
#include "core/report_html.h"
#include "io/file_layer.h"
#include "io/json_file.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct ReportOptions {
  std::vector<std::string> runs;
  std::string out;
};

NamedReport read_report(std::string run) {
  if (run.ends_with("/report.json")) run.resize(run.size() - std::string_view("/report.json").size());
  std::string path = run + "/report.json";
  auto text = read_whole(path);
  const bool finished = text.has_value();
  if (!finished) {
    path = run + "/progress.json";
    text = read_whole(path);
  }
  if (!text)
    refuse(
        "{}: has no report.json; name the output folder of a run that is finished or has been at work for "
        "some "
        "seconds",
        run);
  parse_json(*text, path);  // refuses what an ordered parse would take silently, such as a key said twice
  ordered_json json = ordered_json::parse(*text);
  if (!finished) {
    if (json.is_object() && json.contains("report")) json = ordered_json(json["report"]);
    std::fprintf(stderr, "sheaf: %s: is not finished; the report is of what was saved so far\n", run.c_str());
  }
  const auto version = json.is_object() ? json.find("version") : json.end();
  if (!json.is_object() || version == json.end() || !version->is_number_integer())
    refuse("{}: has no version, so it is no report of this sheaf; run the job again with --restart", path);
  if (version->get<int64_t>() != kReportVersion)
    refuse("{}: is version {} and this sheaf reads version {}; use the sheaf that wrote it", path,
           version->get<int64_t>(), kReportVersion);
  return {run, std::move(json)};
}

void write_page(const std::string& path, const std::string& page) {
  const fs::path target(path);
  const std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  if (!fs::is_directory(folder)) refuse("{}: there is no folder {}; make it first", path, folder);
  write_whole(real_files(), folder, target.filename().string(), page);
}

void report(const ReportOptions& options) {
  std::vector<NamedReport> reports;
  for (const std::string& run : options.runs) reports.push_back(read_report(run));
  const bool one = reports.size() == 1;
  std::string page, table, current;
  try {
    for (const NamedReport& each : reports) {  // one by one first, so that a refusal names its file
      current = each.name;
      page = one ? report_html(each.json) : comparison_html({each});
    }
    if (!one) {
      page = comparison_html(reports);
      table = comparison_text(reports);
    }
  } catch (const nlohmann::json::exception& error) {
    refuse("{}/report.json: is not a whole report: {}; run the job again with --restart", current,
           error.what());
  }
  std::string out = options.out;
  if (out.empty()) out = one ? options.runs[0] + "/report.html" : "comparison.html";
  write_page(out, page);
  fmt::print("{}{}report  {}\n", one ? report_text(reports[0].json) : table, one ? "" : "* best\n", out);
}

}  // namespace

void add_report_command(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand(
      "report", "What a run did so far or in the end, its page made anew, or several runs side by side");
  command->add_option("runs", options->runs, "output folders of runs")->required();
  command->add_option(
      "--out", options->out,
      "the page to write; without it report.html in the run's folder, or comparison.html here for "
      "several runs");
  command->callback([options] { report(*options); });
}

}  // namespace sheaf

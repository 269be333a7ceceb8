#include "core/report/report.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <memory>

#include "app/commands.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/report/compare_reports.h"
#include "core/report/report_html.h"
#include "io/base/file_layer.h"
#include "io/base/named_output.h"
#include "io/run_folder/manifest.h"

namespace sheaf {
namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string out;
};

NamedReport read_report(std::string run) {
  if (run.ends_with("/report.json")) run.resize(run.size() - std::string_view("/report.json").size());
  if (const std::string path = run + "/report.json"; file_size(path)) return {run, read_report_file(path)};
  if (std::error_code ignored; !std::filesystem::is_directory(run, ignored))
    refuse("{}: no such folder; name the output folder of a run", run);
  const std::string path = run + "/progress.json";
  const auto saved = read_whole(path);
  if (!saved)
    refuse(
        "{}: the folder has no report.json; name the output folder of a run that has finished, or that has "
        "been running "
        "for some seconds",
        run);
  NamedReport report{run, read_saved_report(*saved, path).report};
  print_note(run + ": this run is not finished; the report covers what is saved so far");
  return report;
}

void report(const ReportOptions& options) {
  std::vector<NamedReport> reports;
  for (const std::string& run : options.runs) reports.push_back(read_report(run));
  const bool one = reports.size() == 1;
  const std::string page = one ? report_html(reports[0].json) : comparison_html(reports);
  const std::string table = one ? "" : comparison_text(reports);
  std::string out = options.out;
  if (out.empty()) out = one ? options.runs[0] + "/report.html" : "comparison.html";
  if (!out.ends_with(".html")) refuse("--out: {} must end in .html", out);
  NamedOutput(out).write(page);
  print_text(one ? report_text(reports[0].json) : table);
  print_line("report  " + out);
}

}  // namespace

void add_report_command(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand(
      "report", "Show what a run did, also while it is running, and write its page; or compare several runs");
  command->add_option("RUN", options->runs, "Output folders of runs")->type_name("FOLDER")->required();
  command->add_option(
      "--out", options->out,
      "The page to write (default: report.html in the run's folder; for several runs, comparison.html here)");
  command->callback([options] { report(*options); });
}

}  // namespace sheaf

#include "core/report/report.h"

#include <fmt/ranges.h>

#include "app/commands.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/report/report_html.h"
#include "io/base/named_output.h"
#include "io/jobs/finished_run.h"
#include "io/run_folder/manifest.h"

namespace sheaf {
namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string out;
};

void report(const ReportOptions& options) {
  std::vector<NamedReport> reports;
  for (const std::string& run : options.runs) reports.push_back(read_run_report(run, print_note));
  const bool one = reports.size() == 1;
  const std::string page = one ? report_html(reports[0].json) : comparison_html(reports);
  const std::string table = one ? "" : comparison_text(reports);
  std::string out = options.out;
  if (out.empty()) out = one ? options.runs[0] + "/report.html" : "comparison.html";
  if (!out.ends_with(".html")) refuse("--out: {} must end in .html", out);
  // The folder may be someone else's; what the run did can be told all the same.
  std::string trouble;
  try {
    NamedOutput(out).write(page);
  } catch (const Error& error) {
    if (!options.out.empty()) throw;
    trouble = error.what();
  }
  print_text(one ? report_text(reports[0].json) : table);
  if (trouble.empty()) return print_line("report  " + out);
  print_note(
      fmt::format("the page is not written: {}; to write it to another place: sheaf report {} --out {}",
                  trouble, fmt::join(options.runs, " "), one ? "report.html" : "/tmp/comparison.html"));
}

}  // namespace

void add_report_command(Program& program) {
  auto options = std::make_shared<ReportOptions>();
  add_command(
      program, "report",
      "Show what a run did, also while it is running, and write its page; or compare several runs",
      {{"RUN", options->runs, "Output folders of runs", value_name("FOLDER"), kRequired},
       {"--out", options->out,
        "The page to write (default: report.html in the run's folder; for several runs, comparison.html "
        "here)"}},
      [options] { report(*options); });
}

}  // namespace sheaf

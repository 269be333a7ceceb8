#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <memory>

#include "app/commands.h"
#include "app/job_options.h"
#include "app/progress.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/text/spelling.h"
#include "io/jobs/verify_job.h"

namespace sheaf {
namespace {

constexpr int64_t kUsualRows = 20;

int verify(const JobOptions& options) {
  stop_in_order();
  Job sample = options.read();
  if (options.limit == 0 && (sample.input.limit == 0 || sample.input.limit > kUsualRows))
    sample.input.limit = kUsualRows;
  Workbench bench(sample);
  if (!take_input(bench)) return 130;
  ShownRun shown(options.quiet || options.json);
  const VerifyEnd end = verify_job(bench, shown);
  if (!end.finished) return 130;
  if (options.json) {
    nlohmann::ordered_json differences = nlohmann::ordered_json::array();
    for (const VerifyDifference& each : end.differences)
      differences.push_back({{"id", each.id},
                             {"question", each.question},
                             {"method", each.method},
                             {"separate", each.separate}});
    print_json({{"records", end.records},
                {"answers", end.answers},
                {"exact_match", end.match()},
                {"rejects", end.rejects},
                {"differences", differences}});
  } else {
    print_line(fmt::format(
        "{}, {}, exact match {:.4f}{}", counted(end.records, "record"), counted(end.answers, "answer"),
        end.match(), end.rejects > 0 ? fmt::format(", {} rejected", counted(end.rejects, "record")) : ""));
    for (const VerifyDifference& each : end.differences) {
      print_line(fmt::format("  {} {}", each.id.dump(), each.question));
      print_line("    method   " + nlohmann::json(each.method).dump());
      print_line("    separate " + nlohmann::json(each.separate).dump());
    }
  }
  return end.rejects > 0 ? 1 : 0;
}

}  // namespace

void add_verify_command(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand(
      "verify",
      "Decode the first records (20, or --limit) with the job's method and with its baseline, "
      "such as one prompt per question, and count the answers that agree");
  auto options = std::make_shared<JobOptions>();
  options->add_to(*command);
  command->callback([options, &exit_code] { exit_code = verify(*options); });
}

}  // namespace sheaf

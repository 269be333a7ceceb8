#include <fmt/format.h>

#include "app/job_options.h"
#include "app/progress.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/text/format.h"
#include "core/text/spelling.h"
#include "io/jobs/verify_job.h"
#include "io/run_folder/check_run.h"

namespace sheaf {
namespace {

constexpr int64_t kUsualRows = 20;

int verify(const JobOptions& options) {
  stop_in_order();
  Job sample = options.read();
  if (options.limit == 0 && (sample.input.limit == 0 || sample.input.limit > kUsualRows))
    sample.input.limit = kUsualRows;
  OpenedJob opened(sample);
  if (!take_input(opened)) return 130;
  ShownRun shown(options.quiet || options.json);
  const VerifyEnd end = verify_job(opened, shown);
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

void add_verify_command(Program& program) {
  auto options = std::make_shared<JobOptions>();
  add_command(program, "verify",
              "Decode the first records (20, or --limit) with the job's method and with its baseline, "
              "such as one prompt per question, and count the answers that agree",
              {options->arguments()}, [options] { return verify(*options); });
}

void add_verify_run_command(Program& program) {
  struct Options {
    std::string run;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  add_command(
      program, "verify-run",
      "Check that a finished run is whole: compare every byte of its rows and rejects with its manifest",
      {{"RUN", options->run, "The output folder of a run, or the URI it was published to",
        value_name("FOLDER|URI"), kRequired},
       {"--json", options->json, "Print JSON"}},
      [options] {
        const RunCheck check = check_run(options->run);
        const bool whole = check.troubles.empty();
        if (options->json) {
          print_json({{"run", options->run},
                      {"whole", whole},
                      {"rows", check.rows},
                      {"rejects", check.rejects},
                      {"files", check.files},
                      {"bytes", check.bytes},
                      {"troubles", check.troubles}});
          return whole ? 0 : 2;
        }
        for (const std::string& trouble : check.troubles) print_line(trouble);
        if (whole)
          print_line(fmt::format("{}: whole: {}, {}, {} in {}", options->run, counted(check.rows, "row"),
                                 counted(check.rejects, "reject"), size_text(check.bytes),
                                 counted(check.files, "file")));
        else
          print_note(
              "the run does not match its manifest; rerun its job to publish it again, or run it again with "
              "--restart");
        return whole ? 0 : 2;
      });
}

}  // namespace sheaf

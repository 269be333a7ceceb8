#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <memory>

#include "app/commands.h"
#include "app/job_options.h"
#include "app/option_checks.h"
#include "app/progress.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/report/report.h"
#include "io/jobs/run_job.h"
#include "io/run_folder/output_place.h"

namespace sheaf {
namespace {

struct RunOptions : JobOptions {
  RunSettings settings;
  bool zero_on_rejects = false;
  std::string log;
};

int run(const RunOptions& options) {
  if (options.settings.shards > 0 && options.settings.shard != "auto")
    refuse("--shards {} is for --shard auto; --shard I/N says it itself", options.settings.shards);
  stop_in_order();
  outlive_readers();
  const Job job = options.read();
  ShownRun shown(options.quiet || options.json, options.log);
  if (!options.log.empty()) check_log_apart(options.log, job);
  RunEnd end = run_job(job, options.settings, shown);
  if (options.zero_on_rejects && end.exit_code == 1) end.exit_code = 0;
  if (!end.interrupted.empty()) print_note(end.interrupted);
  if (end.was_finished && options.json)
    print_json(end.report.is_object() ? end.report : nlohmann::ordered_json::object());
  if (end.was_finished || end.report.is_null()) return end.exit_code;
  const auto count = [&](const char* key) { return end.report.at(key).get<int64_t>(); };
  const int64_t rejects = count("rejects") + count("rejects_uncounted"),
                records = rejects + count("rows") + count("rows_uncounted");
  if (options.json) {
    print_json(end.report);
  } else if (!options.quiet) {
    print_text(report_text(end.report));
    const bool table = job.output.format == OutputFormat::parquet,
               batch = job.output.format == OutputFormat::openai_batch;
    print_line(fmt::format("rows    {}/rows-*.{}{}", job.output.path, table ? "parquet" : "jsonl",
                           batch ? ", errors.jsonl" : ""));
    print_line(fmt::format("report  {}/report.json, report.html", job.output.path));
    print_text(rejects_text(rejects, records, end.report.at("reject_reasons"),
                            fmt::format("all are in {}/rejects.jsonl", job.output.path)));
  }
  if (const std::string warning = rejects_warning(rejects, records); !warning.empty()) print_warning(warning);
  if (!options.json) forgive_output();  // the result is in the folder
  return end.exit_code;
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("run",
                                     "Run a job: write one structured row per record, in input order. "
                                     "Rerun the same command to resume after an interruption");
  auto options = std::make_shared<RunOptions>();
  options->add_to(*command);
  command->add_flag("--restart", options->settings.restart,
                    "Run the job again. What the output folder holds stays until the new run is finished; "
                    "with --reuse OUTPUT only what changed is decoded");
  command
      ->add_flag("--keep-previous", options->settings.keep_previous,
                 "With --restart: keep what the new run replaces as OUTPUT.previous")
      ->needs("--restart");
  command->add_flag("--allow-empty", options->settings.allow_empty,
                    "Let a run without any row succeed: an empty corpus, or one whose every record is "
                    "rejected (otherwise exit code 2)");
  command
      ->add_option("--shard", options->settings.shard,
                   "Run only part I of N of the corpus: 0/4, 1/4, 2/4 or 3/4 for four parts; `sheaf merge` "
                   "joins them. "
                   "auto: the part that Slurm, Kubernetes or AWS Batch gives this task (docs/cluster.md)")
      ->type_name("I/N|auto");
  command
      ->add_option("--shards", options->settings.shards,
                   "With --shard auto: the number of parts, where the scheduler does not say it")
      ->check(whole_from<int64_t>(1, 100000))
      ->needs("--shard");
  command->add_flag(
      "--exit-zero-on-rejects", options->zero_on_rejects,
      "End with exit code 0, not 1, when records were rejected: schedulers take 1 for a failure");
  command
      ->add_option("--max-rejects", options->settings.max_rejects,
                   "Stop with exit code 2 when more records than this are rejected: a number, or a share of "
                   "the records so far, such as 2.5%")
      ->type_name("N|P%")
      ->check([](const std::string& text) { return text.empty() ? "must not be empty" : ""; });
  command
      ->add_option(
          "--max-hours", options->settings.max_hours,
          "Stop after this many hours with exit code 130 (0: never); rerun the same command to resume")
      ->check(number_from(0, 1e6));
  command
      ->add_option("--max-usd", options->settings.max_usd,
                   "Stop likewise after this many dollars, at the job's cost.usd_per_hour (0: never)")
      ->check(number_from(0, 1e6));
  command
      ->add_option("--reuse", options->settings.reuse,
                   "Take answers from this finished run where nothing that decides them has changed "
                   "(output.reuse)")
      ->type_name("FOLDER");
  command->add_option("--log", options->log, "Append a line of progress to this file every ten seconds");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace sheaf

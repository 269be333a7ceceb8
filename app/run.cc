#include <unistd.h>

#include "app/job_options.h"
#include "app/progress.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/interrupted.h"
#include "core/report/report.h"
#include "core/text/spelling.h"
#include "io/answers/answer_log.h"
#include "io/base/table_stream.h"
#include "io/run_folder/merge_shards.h"

namespace sheaf {
namespace {

struct RunOptions : JobOptions {
  RunSettings settings;
  LogSettings log;
  std::string input, format;
};

/// Standard output as a file that rows are appended to.
class PrintedRows : public OutputFile {
 public:
  void append(std::string_view bytes) override { print_data(bytes); }
  void truncate(int64_t) override { fail("standard output cannot be cut short"); }
  void sync() override {
    if (!flush_output()) fail("standard output: the rows could not be written; is their reader gone?");
  }
};

Job read_job(const RunOptions& options) {
  JobReading reading;
  if (!options.input.empty())
    reading.changes.push_back({"input.path", option_text("--input", options.input)});
  if (!options.format.empty()) {
    reading.streams_rows = true;
    reading.changes.push_back({"output.format", option_text("--format", options.format)});
    if (options.input == "-")
      reading.table = std::make_shared<TableInput>(
          "standard input", [] { return open_ipc_stream(STDIN_FILENO, "standard input", interrupted); });
  }
  return options.read(std::move(reading));
}

/// The rows are on standard output, so what is said of them is not.
int run_stream(const RunOptions& options) {
  if (options.json)
    refuse("--json does not go with --format, whose rows are on standard output; leave one out");
  if (output_is_seen())
    refuse("--format arrow: rows would go to the terminal; send them to a file or a pipe");
  const Job job = read_job(options);
  PrintedRows printed;
  RowStream rows(printed);
  RunSettings settings = options.settings;
  settings.stream = &rows;
  ShownRun shown(options.quiet);
  const RunEnd end = run_logged_job(job, settings, options.log, shown);
  if (!end.interrupted.empty()) print_note(end.interrupted);
  if (end.report.is_null()) return end.exit_code;
  const int64_t rejects = rows.rejects(), records = rejects + rows.rows();
  if (!options.quiet) {
    print_text(report_text(end.report), Stream::err);
    print_text(rejects_text(rejects, records, end.report.at("reject_reasons"), "--log FILE lists them"),
               Stream::err);
  }
  if (const std::string warning = rejects_warning(rejects, records); !warning.empty()) print_warning(warning);
  return end.exit_code;
}

int run(const RunOptions& options) {
  if (options.settings.shards > 0 && options.settings.shard != "auto")
    refuse("--shards {} works only with --shard auto; --shard I/N already has the number",
           options.settings.shards);
  stop_in_order();
  outlive_readers();
  if (!options.format.empty()) return run_stream(options);
  const Job job = read_job(options);
  ShownRun shown(options.quiet || options.json);
  const RunEnd end = run_logged_job(job, options.settings, options.log, shown);
  if (!end.interrupted.empty()) print_note(end.interrupted);
  if (end.was_finished && options.json)
    print_json(end.report.is_object() ? end.report : nlohmann::ordered_json::object());
  if (end.was_finished || end.report.is_null()) return end.exit_code;
  const auto count = [&](const char* key) { return end.report.at(key).get<int64_t>(); };
  const int64_t rejects = count("rejects"), records = rejects + count("rows");
  if (options.json) {
    print_json(end.report);
  } else if (!options.quiet) {
    print_text(report_text(end.report));
    const bool batch = job.output.format == OutputFormat::openai_batch;
    print_line(fmt::format("rows    {}/rows-*{}{}", job.output.path, rows_ending(job.output.format),
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

void add_run_command(Program& program) {
  auto options = std::make_shared<RunOptions>();
  RunSettings& settings = options->settings;
  add_command(
      program, "run",
      "Run a job: write one structured row per record, in input order. "
      "Rerun the same command to resume after an interruption",
      {options->arguments(),
       {"--input", options->input,
        "Read this corpus in place of input.path: a file, a folder, a glob, a URI, or - for standard input",
        value_name("PATH")},
       {"--format", options->format,
        "arrow: write the rows to standard output, as a stream of Arrow's IPC format, and no output folder. "
        "With --input - the records are such a stream too (docs/python.md)",
        one_of({"arrow"})},
       {"--restart", settings.restart,
        "Run the job again. What the output folder holds stays until the new run is finished; "
        "with --reuse OUTPUT only what changed is decoded"},
       {"--keep-previous", settings.keep_previous,
        "With --restart: keep what the new run replaces as OUTPUT.previous", works_with("--restart")},
       {"--allow-empty", settings.allow_empty,
        "Let a run without any row succeed: an empty corpus, or one whose every record is "
        "rejected (otherwise exit code 2)"},
       {"--shard", settings.shard,
        "Run only part I of N of the corpus: 0/4, 1/4, 2/4 or 3/4 for four parts; `sheaf merge` joins them. "
        "auto: the part that Slurm, Kubernetes or AWS Batch gives this task (docs/cluster.md)",
        value_name("I/N|auto")},
       {"--shards", settings.shards,
        "With --shard auto: the number of parts, if the scheduler does not set it",
        whole_from<int64_t>(1, 100000), works_with("--shard")},
       {"--exit-zero-on-rejects", settings.zero_on_rejects,
        "End with exit code 0, not 1, when records were rejected: schedulers take 1 for a failure"},
       {"--max-rejects", settings.max_rejects,
        "Stop with exit code 2 when more records than this are rejected: a number, or a share of "
        "the records so far, such as 2.5%",
        value_name("N|P%"),
        checked({[](std::string& text) { return text.empty() ? "must not be empty" : ""; }, ""})},
       {"--max-hours", settings.max_hours, "Stop after this many hours with exit code 130 (0: never)",
        number_from(0, 1e6)},
       {"--max-usd", settings.max_usd,
        "Stop in the same way after this many dollars, at the job's cost.usd_per_hour (0: never)",
        number_from(0, 1e6)},
       reuse_options(settings.reuse),
       {"--require-reuse", settings.reuse.required,
        "End with exit code 2, before anything is decoded, when a smaller share of the answers is known from "
        "the runs of --reuse: 0.9 or 90%",
        value_name("SHARE"),
        checked({[](std::string& text) { return text.empty() ? "must not be empty" : ""; }, ""})},
       {"--log", options->log.log,
        "Append to this file what the run has to say, and its progress every ten seconds; also with --quiet"},
       {"--log-format", options->log.format, "Lines of text, or a JSON object per line (docs/reliability.md)",
        one_of({"text", "json"}), kWithDefault, works_with("--log")},
       {"--metrics", options->log.metrics,
        "Keep figures for Prometheus in this file, for node_exporter's textfile collector: DIR/sheaf.prom",
        value_name("FILE")}},
      [options] { return run(*options); });
}

void add_merge_command(Program& program) {
  struct Options {
    std::string out;
    std::vector<std::string> shards;
    bool zero_on_rejects = false;
  };
  auto options = std::make_shared<Options>();
  add_command(
      program, "merge", "Join the finished folders of `sheaf run --shard` into one, in input order",
      {{"OUT", options->out, "The folder to create", value_name("FOLDER"), kRequired},
       {"SHARD", options->shards, "The shards' folders, in any order", value_name("FOLDER"), kRequired},
       {"--exit-zero-on-rejects", options->zero_on_rejects,
        "End with exit code 0, not 1, when the shards have rejected records"}},
      [options] {
        outlive_readers();
        const auto keep_answers = [](const std::string& out, const std::vector<std::string>& shards) {
          const std::string trouble = merge_answers(real_files(), out, shards);
          return trouble.empty() ? "" : "the merged folder has no answers for --reuse: " + trouble;
        };
        const Merged merged = merge_shards(real_files(), options->out, options->shards, keep_answers);
        if (!merged.notice.empty()) print_note(merged.notice);
        print_line(fmt::format("{}{} in {}, {} in {}", merged.was_finished ? "already merged: " : "",
                               counted(merged.rows, "row"), counted(merged.files, "file"),
                               counted(merged.rejects, "reject"), options->out));
        forgive_output();  // the result is in the folder
        return merged.rejects > 0 && !options->zero_on_rejects ? 1 : 0;
      });
}

}  // namespace sheaf

#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "app/job_options.h"
#include "app/progress.h"
#include "app/workbench.h"
#include "core/error.h"
#include "core/plan/pipeline.h"
#include "core/report.h"
#include "core/report_html.h"
#include "core/stopwatch.h"
#include "io/corpus.h"
#include "io/fingerprint.h"
#include "io/row_table.h"
#include "io/run_folder.h"

namespace sheaf {
namespace {

struct RunOptions : JobOptions {
  bool restart = false;
  std::string shard;
  std::string log;
};

/// "2/8": the third of eight. Windows are dealt out in runs, so that rows which could share a prompt stay
/// together.
Shard choose_shard(const std::string& text, Corpus& corpus, int32_t window) {
  Shard shard;
  if (text.empty()) return shard;
  const char *at = text.data(), *end = at + text.size();
  const auto [slash, bad] = std::from_chars(at, end, shard.index);
  if (bad == std::errc() && slash != end && *slash == '/') {
    const auto [rest, wrong] = std::from_chars(slash + 1, end, shard.count);
    if (wrong == std::errc() && rest == end && shard.index >= 0 && shard.count > shard.index &&
        shard.count <= 100000) {
      const int64_t rows = corpus.count_rows(), windows = (rows + window - 1) / window;
      shard.first = std::min(rows, windows * shard.index / shard.count * window);
      shard.end = std::min(rows, windows * (shard.index + 1) / shard.count * window);
      return shard;
    }
  }
  refuse("--shard: \"{}\" is no part of a whole; write 0/4 for the first of four, 3/4 for the last", text);
}

void say(const RunOptions& options, const std::string& text) {
  if (!options.quiet) std::fprintf(stderr, "sheaf: %s\n", text.c_str());
}

int run(const RunOptions& options) {
  install_interrupt();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is a full disk, not a death
  Report report;
  Workbench bench(options.read());
  if (!bench.take_input()) return 130;
  const Job& job = bench.job();
  auto corpus = bench.corpus();
  const Shard shard = choose_shard(options.shard, *corpus, job.engine.window);
  if (shard.count > 1) corpus = first_rows(std::move(corpus), shard.end);

  RunFolderOptions folder_options;
  folder_options.path = job.output.path;
  folder_options.rows_per_file = job.output.rows_per_file;
  folder_options.fingerprint = job_fingerprint(job, bench.on_gpu(), shard);
  folder_options.first_row = shard.first;
  folder_options.restart = options.restart;
  if (job.output.format == "parquet") {
    folder_options.ending = ".parquet";
    folder_options.convert = [columns = row_columns(job, bench.schema(), has_integer_ids(job))](
                                 const std::string& lines, OutputFile& target) {
      write_parquet_rows(lines, columns, target);
    };
  }
  RunFolder folder(real_files(), std::move(folder_options));
  if (folder.finished()) {
    say(options, fmt::format("{} was finished before: {} rows, {} rejects; --restart runs it again",
                             job.output.path, folder.rows(), folder.rejects()));
    if (options.json) std::cout << read_whole(job.output.path + "/report.json").value_or("{}\n");
    return folder.rejects() > 0 ? 1 : 0;
  }
  if (!folder.notice().empty()) say(options, folder.notice());
  const int64_t rows_before = folder.rows(), position_before = folder.position();
  if (position_before > shard.first)
    say(options, fmt::format("going on after {} rows and {} rejects in {}", rows_before, folder.rejects(),
                             job.output.path));

  std::unique_ptr<Backend> backend;
  {
    const Stopwatch watch(report.open_seconds);
    backend = bench.backend();
  }
  report.open_seconds += bench.open_seconds();
  const auto work_start = std::chrono::steady_clock::now();
  const EngineOptions engine_options = bench.engine_options(*backend);
  Engine engine(*backend, bench.stop_rules(), engine_options);
  const auto task = bench.task(job);
  Planner planner(*task, make_builder(job.method), bench.limits(engine));
  corpus->skip_to(position_before);
  Pipeline pipeline(*corpus, planner, engine, job.engine.window);
  pipeline.on_window = [&](int64_t position) { folder.commit(position); };

  std::optional<int64_t> rows_to_come = corpus->rows_expected();
  if (rows_to_come) *rows_to_come -= position_before;
  Progress progress(options.quiet || options.json, rows_to_come, options.log);
  engine.on_step = [&](const EngineStats& stats) {
    report.statistics.step(stats, pipeline.stats());
    progress.update(pipeline.stats().decoded, pipeline.stats().rejects,
                    job.cost.usd_per_hour * job.cost.devices / 3600);
  };
  report.statistics.start();
  const bool finished = pipeline.run(
      [&](const Item& item, const std::vector<Answer>& answers) {
        const nlohmann::ordered_json row = task->row(item, answers);
        report.statistics.row(row, answers);
        folder.row(row);
      },
      [&](const Reject& reject) {
        report.statistics.reject(reject);
        folder.reject(reject);
      });
  report.statistics.step(engine.stats(), pipeline.stats());
  progress.close();
  if (!finished) {
    std::fprintf(stderr, "sheaf: interrupted; %lld rows are safe in %s; run the same command to go on\n",
                 static_cast<long long>(folder.rows()), job.output.path.c_str());
    return 130;
  }

  report.job = job.file;
  report.model = job.model.path;
  report.backend = backend->describe();
  report.method = job.method.name;
  report.engine = engine.stats();
  report.pipeline = pipeline.stats();
  report.page_size = engine_options.page_size;
  report.kv_bytes_per_token = backend->kv_bytes_per_token();
  report.total_seconds = report.open_seconds +
                         std::chrono::duration<double>(std::chrono::steady_clock::now() - work_start).count();
  report.usd_per_hour = job.cost.usd_per_hour;
  report.devices = job.cost.devices;
  report.rows_before = rows_before;
  report.device_seconds = backend->stage_seconds();
  const nlohmann::ordered_json json = report_json(report);
  folder.finish(json.dump(2) + "\n", report_html(json));
  if (options.json)
    std::cout << json.dump(2) << '\n';
  else if (!options.quiet)
    std::cout << report_text(report) << "rows    " << job.output.path << "/rows-*." << job.output.format
              << "\nreport  " << job.output.path << "/report.json, report.html\n";
  return folder.rejects() > 0 ? 1 : 0;
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand(
      "run",
      "Run a job: one structured row per item, in input order. The same command goes on after whatever "
      "stopped it");
  auto options = std::make_shared<RunOptions>();
  options->add_to(*command);
  command->add_flag("--restart", options->restart, "Throw away what the output folder holds and begin again");
  command->add_option("--shard", options->shard,
                      "Only this part of the corpus, such as 0/4 to 3/4; `sheaf merge` joins the parts");
  command->add_option("--log", options->log, "A file that gets a line of progress every ten seconds");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace sheaf

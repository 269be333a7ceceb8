#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <csignal>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "app/job_options.h"
#include "app/progress.h"
#include "app/run_count.h"
#include "app/workbench.h"
#include "core/error.h"
#include "core/plan/pipeline.h"
#include "core/report_html.h"
#include "core/stopwatch.h"
#include "core/task/item_row.h"
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
  std::string max_rejects;
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

/// "100" or "2.5%": how many rejects a job bears.
class MostRejects {
 public:
  explicit MostRejects(const std::string& text) : text_(text) {
    if (text.empty()) return;
    const char* end = text.data() + text.size();
    const auto [rest, bad] = std::from_chars(text.data(), end, most_);
    percent_ = bad == std::errc() && rest + 1 == end && *rest == '%';
    if (bad != std::errc() || (rest != end && !percent_) || !(most_ >= 0) || (percent_ && most_ > 100) ||
        (!percent_ && most_ != std::floor(most_)))
      refuse("--max-rejects: \"{}\" is neither a number of rows such as 100 nor a share such as 2.5%", text);
  }

  /// After a window: refuses to go on where there are more among the first `rows` rows.
  void check(int64_t rejects, int64_t rows, const std::string& folder) const {
    const auto count = static_cast<double>(rejects);
    if (text_.empty() || count <= (percent_ ? most_ / 100 * static_cast<double>(rows) : most_)) return;
    refuse(
        "{} of the first {} rows are rejects, more than --max-rejects {}; {}/rejects.jsonl.part says why. "
        "What is done is kept: mend the corpus and --restart, or go on with a higher limit",
        rejects, rows, text_, folder);
  }

 private:
  std::string text_;
  double most_ = 0;
  bool percent_ = false;
};

void say(const RunOptions& options, const std::string& text) {
  if (!options.quiet) std::fprintf(stderr, "sheaf: %s\n", text.c_str());
}

int run(const RunOptions& options) {
  install_interrupt();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is a full disk, not a death
  const MostRejects most_rejects(options.max_rejects);
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

  double open_seconds = 0;
  std::unique_ptr<Backend> backend;
  {
    const Stopwatch watch(open_seconds);
    backend = bench.backend();
  }
  const EngineOptions engine_options = bench.engine_options(*backend);
  Report about;
  about.job = job.file;
  about.model = job.model.path;
  about.backend = backend->describe();
  about.method = job.method.name;
  about.page_size = engine_options.page_size;
  about.kv_bytes_per_token = backend->kv_bytes_per_token();
  about.usd_per_hour = job.cost.usd_per_hour;
  about.devices = job.cost.devices;
  RunCount count(std::move(about), folder);
  count.start(open_seconds + bench.open_seconds());
  Engine engine(*backend, bench.stop_rules(), engine_options);
  const auto task = bench.task(job);
  Planner planner(*task, make_builder(job.method), bench.limits(engine));
  corpus->skip_to(position_before);
  Pipeline pipeline(*corpus, planner, engine, job.engine.window);
  pipeline.on_window = [&](int64_t position) {
    folder.commit(position);
    count.committed(pipeline.stats());
    most_rejects.check(folder.rejects(), position - shard.first, job.output.path);
  };

  std::optional<int64_t> rows_to_come = corpus->rows_expected();
  if (rows_to_come) *rows_to_come -= position_before;
  Progress progress(options.quiet || options.json, rows_to_come, options.log);
  engine.on_step = [&](const EngineStats& stats) {
    const PipelineStats done = pipeline.stats();
    count.step(stats, done, *backend);
    progress.update(done.decoded, done.rejects, job.cost.usd_per_hour * job.cost.devices / 3600);
  };
  const bool finished = pipeline.run(
      [&](const Item& item, const Outcome& outcome) {
        const nlohmann::ordered_json row = item_row(*task, item, outcome, job.output);
        count.row(row, outcome);
        folder.row(row);
      },
      [&](const Reject& reject) {
        count.reject(reject);
        folder.reject(reject);
      });
  count.step(engine.stats(), pipeline.stats(), *backend, true);
  progress.close();
  if (!finished) {
    count.committed(pipeline.stats(), true);
    std::fprintf(stderr, "sheaf: interrupted; %lld rows are safe in %s; run the same command to go on\n",
                 static_cast<long long>(folder.rows()), job.output.path.c_str());
    return 130;
  }
  const nlohmann::ordered_json report = count.report(pipeline.stats());
  folder.finish(report.dump(2) + "\n", report_html(report));
  if (options.json)
    std::cout << report.dump(2) << '\n';
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
  command->add_option("--max-rejects", options->max_rejects,
                      "Stop, with exit code 2, once more rows than that are rejects: a number, or a share of "
                      "the rows so far such as 2.5%");
  command->add_option("--log", options->log, "A file that gets a line of progress every ten seconds");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace sheaf

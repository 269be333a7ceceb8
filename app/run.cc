#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "app/job_options.h"
#include "app/progress.h"
#include "app/workbench.h"
#include "core/error.h"
#include "core/plan/pipeline.h"
#include "core/report.h"
#include "core/stopwatch.h"
#include "io/row_writer.h"

namespace sheaf {
namespace {

void write_report(const std::string& path, const Report& report) {
  std::ofstream file(path);
  file << report_json(report).dump(2) << '\n';
  if (!file.flush()) fail("{}: cannot be written", path);
}

int run(const JobOptions& options, bool restart) {
  install_interrupt();
  Report report;
  Workbench bench(options.read());
  const Job& job = bench.job();
  RowWriter writer(job.output.path, restart);

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
  const auto corpus = bench.corpus();
  Pipeline pipeline(*corpus, planner, engine, job.engine.window);

  Progress progress(options.quiet || options.json, corpus->rows_expected());
  engine.on_step = [&](const EngineStats&) {
    progress.update(pipeline.stats().decoded, pipeline.stats().rejects,
                    job.cost.usd_per_hour * job.cost.devices / 3600);
  };
  const bool finished = pipeline.run(
      [&](const Item& item, const std::vector<Answer>& answers) { writer.row(task->row(item, answers)); },
      [&](const Reject& reject) { writer.reject(reject); });
  progress.close();
  if (!finished) {
    writer.flush();
    std::fprintf(stderr, "sheaf: interrupted after %lld rows; they are in %s\n",
                 static_cast<long long>(writer.rows()), writer.folder().c_str());
    return 130;
  }
  writer.finish();

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
  const std::string report_path = job.output.path + "/report.json";
  write_report(report_path, report);
  if (options.json)
    std::cout << report_json(report).dump(2) << '\n';
  else if (!options.quiet)
    std::cout << report_text(report) << "rows    " << job.output.path << "/rows.jsonl\nreport  "
              << report_path << '\n';
  return writer.rejects() > 0 ? 1 : 0;
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("run", "Run a job: one structured row per item, in input order");
  auto options = std::make_shared<JobOptions>();
  auto restart = std::make_shared<bool>(false);
  options->add_to(*command);
  command->add_flag("--restart", *restart, "Replace the rows of an earlier run in the output folder");
  command->callback([options, restart, &exit_code] { exit_code = run(*options, *restart); });
}

}  // namespace sheaf

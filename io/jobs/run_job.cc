#include "io/jobs/run_job.h"

#include <cmath>
#include <memory>

#include "app/progress.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/stopwatch.h"
#include "core/estimate/predict.h"
#include "core/plan/pipeline.h"
#include "core/report/report_html.h"
#include "core/task/item_row.h"
#include "io/corpus/corpus.h"
#include "io/files/hardware_file.h"
#include "io/jobs/run_count.h"
#include "io/jobs/run_limits.h"
#include "io/jobs/workbench.h"
#include "io/run_folder/fingerprint.h"
#include "io/run_folder/output_place.h"
#include "io/run_folder/parquet_rows.h"
#include "io/run_folder/report_file.h"
#include "io/run_folder/run_folder.h"

namespace sheaf {
namespace {

void say(const RunSettings& settings, const std::string& text) {
  if (!settings.quiet) print_note(text);
}

}  // namespace

RunEnd run_job(const Job& asked, const RunSettings& settings) {
  const MostRejects most_rejects(settings.max_rejects);
  Workbench bench(asked);
  if (!bench.take_input()) return {130, false, nullptr};
  const Job& job = bench.job();
  auto corpus = bench.corpus();
  const Shard shard = choose_shard(settings.shard, *corpus, job.engine.window);
  if (shard.count > 1) corpus = first_rows(std::move(corpus), shard.end);

  check_output_apart(job);
  if (!settings.log.empty()) check_log_apart(settings.log, job);
  RunFolderOptions folder_options;
  folder_options.path = job.output.path;
  folder_options.rows_per_file = job.output.rows_per_file;
  const nlohmann::ordered_json fingerprint = job_fingerprint(job, bench.on_gpu(), shard);
  folder_options.fingerprint = fingerprint;
  folder_options.first_row = shard.first;
  folder_options.restart = settings.restart;
  if (job.output.format == "parquet") {
    folder_options.ending = ".parquet";
    folder_options.writer = [columns = row_columns(job, bench.schema(), has_integer_ids(job))](
                                OutputFile& target) { return write_parquet_rows(columns, target); };
  }
  RunFolder folder(real_files(), std::move(folder_options));
  if (folder.finished()) {
    say(settings, fmt::format("{} was finished before: {} rows, {} rejects; --restart runs it again",
                              job.output.path, folder.rows(), folder.rejects()));
    const std::string path = job.output.path + "/report.json";
    return {folder.rejects() > 0 ? 1 : 0, true,
            file_size(path) ? read_report_file(path) : nlohmann::ordered_json()};
  }
  if (!folder.notice().empty()) say(settings, folder.notice());
  const int64_t rows_before = folder.rows(), position_before = folder.position();
  if (position_before > shard.first)
    say(settings, fmt::format("going on after {} rows and {} rejects in {}", rows_before, folder.rejects(),
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
  if (!count.notice().empty()) say(settings, count.notice());
  count.start(open_seconds + bench.open_seconds());
  std::optional<PredictedBackend> predicted;
  const std::optional<DeviceModel> device = find_device_model(backend->describe());
  if (device) predicted.emplace(*backend, *device);
  Engine engine(predicted ? *predicted : *backend, bench.stop_rules(), engine_options);
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
  Progress progress(settings.quiet, rows_to_come, settings.log);
  engine.on_step = [&](const EngineStats& stats) {
    const PipelineStats done = pipeline.stats();
    count.step(stats, done, *backend);
    if (predicted)
      count.predict(predicted->time().seconds(), device->widened(device->error, backend->config()));
    if (!rows_to_come && done.share_read.value_or(0) > 0)
      progress.guess(std::llround(static_cast<double>(done.rows_read) / *done.share_read) - position_before);
    progress.update(done.decoded, done.rejects, job.cost.usd_per_hour * job.cost.devices / 3600);
  };
  const auto work = [&] {
    return pipeline.run(
        [&](const Item& item, const Outcome& outcome) {
          const Row row = item_row(*task, item, outcome, job.output);
          count.row(row, outcome);
          folder.row(row);
        },
        [&](const Reject& reject) {
          count.reject(reject);
          folder.reject(reject);
        });
  };
  bool finished = false;
  try {
    finished = work();
  } catch (...) {
    progress.close();
    try {
      count.save();
    } catch (const std::exception&) {  // what stopped the run is the one to report
    }
    throw;
  }
  count.step(engine.stats(), pipeline.stats(), *backend, true);
  progress.close();
  if (!finished) {
    count.save();
    print_note(fmt::format("interrupted; {} rows are safe in {}; rerun the same command to resume",
                           folder.rows(), job.output.path));
    return {130, false, nullptr};
  }
  if (corpus_fingerprint(job) != fingerprint.at("corpus"))
    refuse(
        "{}: its files were changed while they were read, so the rows would be of neither the old ones nor "
        "the "
        "new ones; leave them alone and begin again with --restart",
        job.input.path);
  if (folder.rows() + folder.rejects() == 0)
    say(settings, fmt::format("{}: there was no row in it", job.input.path));
  nlohmann::ordered_json report = count.report(pipeline.stats());
  folder.finish(report.dump(2) + "\n", report_html(report));
  return {folder.rejects() > 0 ? 1 : 0, false, std::move(report)};
}

}  // namespace sheaf

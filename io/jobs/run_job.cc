#include "io/jobs/run_job.h"

#include <cmath>
#include <ctime>
#include <filesystem>
#include <fmt/chrono.h>

#include "core/base/error.h"
#include "core/base/stopwatch.h"
#include "core/plan/pipeline.h"
#include "core/report/report.h"
#include "core/report/report_html.h"
#include "core/task/record_row.h"
#include "core/text/spelling.h"
#include "io/base/process.h"
#include "io/base/store_uri.h"
#include "io/base/table_stream.h"
#include "io/corpus/corpus.h"
#include "io/files/confidence_file.h"
#include "io/jobs/engines.h"
#include "io/jobs/repeated_ids.h"
#include "io/jobs/run_count.h"
#include "io/jobs/run_limits.h"
#include "io/jobs/trusted_run.h"
#include "io/passages/passages.h"
#include "io/run_folder/manifest.h"
#include "io/run_folder/output_place.h"
#include "io/run_folder/restart.h"
#include "io/run_folder/row_line.h"
#include "io/run_folder/run_folder.h"
#include "io/run_folder/table_rows.h"

namespace sheaf {
namespace {

/// A job that no file was read for has no list of its corpus yet.
Job with_listing(Job job) {
  if (!job.input.listing) list_corpus(job.input);
  return job;
}

/// One session of a run: open what it reads and writes, wire what computes, run, finish.
class JobRun {
 public:
  JobRun(const Job& asked, const RunSettings& settings, RunListener& listener)
      : settings_(settings),
        listener_(listener),
        most_rejects_(settings.max_rejects),
        opened_(with_listing(asked), settings.model) {
    for (const std::string& notice : opened_.notices()) listener_.note(notice);
  }

  /// The end of the run where nothing is left to do.
  std::optional<RunEnd> open() {
    if (!opened_.take_input()) return RunEnd{130, false, nullptr, "interrupted while reading standard input"};
    corpus_ = opened_.corpus();
    shard_ = choose_shard(settings_.shard, settings_.shards, *corpus_, job().engine.window);
    if (shard_.count > 1) corpus_ = first_rows(std::move(corpus_), shard_.end);
    ids_ = RepeatedIds::watch(job(), corpus_);
    settings_.stream ? check_stream() : check_output_apart(job());
    check_reuse();
    if (settings_.max_usd > 0 && job().cost.usd_per_hour <= 0)
      refuse("--max-usd needs the price of an hour; set cost.usd_per_hour in the job");
    if (!job().task.trust.run.empty()) listener_.note(trusted_.emplace(job(), opened_.schema()).notice());
    fingerprint_ = job_fingerprint(job(), opened_.on_gpu(), shard_);
    const nlohmann::ordered_json& before = opened_.open_model().fingerprint();
    for (const char* part : {"model", "adapter"})
      if (!before.is_null() && before.at(part) != fingerprint_.at(part))
        fail_for_now("the files of the {} changed {}", part,
                     settings_.model ? "since they were opened; open the model again"
                                     : "while sheaf opened them; rerun the same command");
    if (!open_earlier())
      return RunEnd{130, false, nullptr, "interrupted while looking for answers of earlier runs"};
    if (settings_.stream) {
      settings_.stream->open(row_columns(job(), opened_.schema(), has_integer_ids(job().input)));
      settings_.stream->commit(shard_.first, true);
      sink_ = settings_.stream;
      position_before_ = shard_.first;
      return std::nullopt;
    }
    open_folder();
    sink_ = &*folder_;
    if (folder_->finished()) return finished_before();
    if (!folder_->notice().empty()) listener_.note(folder_->notice());
    position_before_ = folder_->position();
    if (position_before_ > shard_.first)
      listener_.note(fmt::format("resuming after {} and {} in {}", counted(folder_->rows(), "row"),
                                 counted(folder_->rejects(), "reject"), folder_path()));
    return std::nullopt;
  }

  void wire() {
    double open_seconds = 0;
    {
      const Stopwatch watch(open_seconds);
      engines_.emplace(opened_, Engines::Use{.predict = true, .store = Engines::Use::Store::used},
                       settings_.replace);
    }
    predicted_.resize(engines_->size());
    count_.emplace(describe_run(), *sink_);
    if (!count_->notice().empty()) listener_.note(count_->notice());
    count_->start(open_seconds + opened_.open_seconds());
    started_ = Clock::now();
    used_before_ = process_use();
    task_ = opened_.task(job());
    if (trusted_) task_ = make_trusting_task(std::move(task_), *trusted_);
    if (!job().output.calibration.empty()) scales_ = read_confidence_file(job().output.calibration);
    for (const std::string& notice : task_->notices()) listener_.note(notice);
    planner_.emplace(make_builder(job().method), opened_.limits(engines_->pointers()));
    corpus_->skip_to(position_before_);
    pipeline_.emplace(*corpus_, *task_, *planner_, engines_->pointers(), job().engine.window);
    open_answers();
    pipeline_->on_window = [this](int64_t position) {
      if (reuse_) reuse_->commit(position);
      // Rows files end where windows do in any run, however often it was resumed.
      sink_->commit(position, position % job().engine.window == 0);
      count_->committed(pipeline_->stats());
      most_rejects_.check(sink_->rejects(), position - shard_.first,
                          folder_ ? folder_path() + "/rejects.jsonl.part says why" : std::string());
    };
    pipeline_->on_step = [this](size_t engine, const EngineStats& stats) { count_step(engine, stats); };
    pipeline_->on_failed = [this](size_t engine, const std::string& why) { lose_engine(engine, why); };
    records_to_come_ = corpus_->records_expected();
    if (records_to_come_) {
      count_->expect(*records_to_come_ - shard_.first);
      *records_to_come_ -= position_before_;
    }
  }

  /// False where it was interrupted.
  bool run() {
    listener_.begun({job().file, folder_ ? folder_path() : std::string(),
                     shard_.count > 1 ? fmt::format("{}/{}", shard_.index, shard_.count) : "",
                     engines_->describe(), sink_->rows(), sink_->rejects(), records_to_come_});
    listener_.started(records_to_come_);
    bool finished = false;
    try {
      finished = pipeline_->run(
          [this](const Record& record, const Outcome& outcome) {
            Row row = record_row(*task_, record, outcome, job().output);
            if (scales_) scale_confidence(*scales_, row);
            if (trusted_) trusted_->fill(record, job().output.confidence, job().output.sources, row);
            count_->add([&](Report& session) { session.statistics.row(row, outcome.answers, record); });
            sink_->row(row);
          },
          [this](const Reject& reject) {
            count_->add([&](Report& session) { session.statistics.reject(reject); });
            sink_->reject(reject);
            listener_.rejected(reject);
          });
    } catch (...) {
      listener_.ended();
      try {
        count_->save(true);
      } catch (const std::exception&) {  // what stopped the run is the one to report
      }
      throw;
    }
    end_store();
    count_->add(
        [&](Report& session) { session.statistics.step(pipeline_->engine_stats(), pipeline_->stats()); });
    for (size_t i = 0; i < engines_->size(); ++i)
      count_->step(i, pipeline_->engine_stats(i), *engines_, true);
    listener_.ended();
    return finished;
  }

  RunEnd interrupted() {
    count_->save(true);
    if (!folder_)
      return {130, false, nullptr,
              fmt::format("{}; {} reached the stream, which is broken off",
                          limit_.empty() ? "interrupted" : limit_,
                          counted(sink_->rows(), "row") + (sink_->rows() == 1 ? " has" : " have"))};
    const std::string resume = job().output.dated
                                   ? fmt::format("add --set output.path={} to the command", job().output.path)
                                   : "rerun the same command";
    const int64_t ahead = pipeline_->stats().ahead;
    const std::string more =
        ahead > 0 ? fmt::format(" and the answers of {} more {}", ahead, plural("record", ahead)) : "";
    const std::string kept = restart_ ? fmt::format("; {} is as it was", job().output.path) : "";
    return {130, false, nullptr,
            fmt::format("{}; {}{} safe in {}{}; {} to resume", limit_.empty() ? "interrupted" : limit_,
                        counted(folder_->rows(), "row"),
                        more + (folder_->rows() == 1 && ahead == 0 ? " is" : " are"), folder_path(), kept,
                        resume)};
  }

  RunEnd finish() {
    if (earlier_->usable() && pipeline_->stats().reused == 0 && sink_->rows() > 0)
      listener_.warn(fmt::format(
          "output.reuse: no answer of {} could be taken: no document has the same prompt as there (the "
          "instruction, the list of attributes or every document changed)",
          earlier_->names()));
    Job::Input now = job().input;
    list_corpus(now);
    if (corpus_fingerprint(now) != fingerprint_.at("corpus"))
      refuse(
          "{}: the corpus was changed during the run, so the rows match neither its old nor its new state; "
          "start again with --restart, and do not change the corpus during the run",
          job().input.path);
    opened_.open_model().check_weights();
    nlohmann::ordered_json report = count_->report(pipeline_->stats());
    check_rows(report);
    if (const auto& passages = job().input.passages; passages && !passages->notice().empty())
      listener_.note(passages->notice());
    if (ids_)
      if (const std::string notice = ids_->notice(); !notice.empty()) listener_.note(notice);
    if (answers_) answers_->finish(answer_settings(job(), fingerprint_));
    if (folder_)
      folder_->finish(report.dump(2) + "\n", report_html(report));
    else
      settings_.stream->close();
    if (restart_) restart_->swap();
    return {exit_code(), false, std::move(report), {}};
  }

 private:
  const Job& job() const { return opened_.job(); }
  std::string corpus_name() const { return job().input.table ? job().input.table->name() : job().input.path; }
  const std::string& folder_path() const { return restart_ ? restart_->building() : job().output.path; }

  RunFolderOptions folder_options() const {
    RunFolderOptions options;
    options.path = folder_path();
    options.rows_per_file = job().output.rows_per_file;
    options.fingerprint = fingerprint_;
    options.sources = {job().input.path, job().task.schema};
    options.corpus_folder = common_folder(find_corpus_files(job().input).files);
    options.first_row = shard_.first;
    options.restart = restart_ && !restart_->is_begun(fingerprint_);
    if (job().output.format == OutputFormat::openai_batch) {
      options.line = [model = std::filesystem::path(job().model.path).stem().string()](const Row& row) {
        return openai_line(row, model, std::time(nullptr));
      };
      options.openai_errors = true;
    }
    if (const OutputFormat format = job().output.format; is_table(format)) {
      options.ending = rows_ending(format);
      options.writer = [format, columns = row_columns(job(), opened_.schema(), has_integer_ids(job().input))](
                           OutputFile& target) { return write_table_rows(format, columns, target); };
    }
    return options;
  }

  /// Whether the folder holds this very run, which is to be taken as it is.
  bool is_finished_here() const {
    const std::string& out = job().output.path;
    return settings_.take_finished && file_size(out + "/_SUCCESS") &&
           read_manifest(out, "run the job again with --restart").fingerprint == fingerprint_;
  }

  void open_folder() {
    settle_restart(real_files(), job().output.path);
    const std::string other = unfinished_restart(job().output.path);
    if (settings_.restart && !is_finished_here()) {
      restart_.emplace(real_files(), settle_path(job().output.path), settings_.keep_previous);
      if (!other.empty() && !restart_->is_begun(fingerprint_))
        listener_.note(fmt::format(
            "{} held an unfinished restart with other settings or another corpus; this one replaces it",
            other));
    } else if (!other.empty()) {
      listener_.note(
          fmt::format("{} holds a restart that is not finished; add --restart to resume it", other));
    }
    folder_.emplace(real_files(), folder_options());
  }

  int exit_code() const { return sink_->rejects() > 0 && !settings_.zero_on_rejects ? 1 : 0; }

  RunEnd finished_before() {
    RunEnd end;
    end.exit_code = exit_code();
    end.was_finished = !restart_;
    if (restart_)
      restart_->swap();  // which the session that finished it did not come to
    else
      listener_.note(fmt::format(
          "{} is already finished: {}, {}; {}", job().output.path, counted(folder_->rows(), "row"),
          counted(folder_->rejects(), "reject"),
          settings_.take_finished ? "they are taken as they are" : "use --restart to run it again"));
    const std::string path = job().output.path + "/report.json";
    if (file_size(path)) end.report = read_report_file(path);
    return end;
  }

  Report describe_run() const {
    Report about;
    about.job = job().file;
    about.model = job().model.path;
    about.backend = engines_->describe();
    about.method = job().method.name;
    about.chat = opened_.chat().name;
    about.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    about.settings = fingerprint_.at("job");
    about.changed_settings = changed_settings(about.settings);
    Sha256 corpus;
    for (const auto& [file, about_file] : fingerprint_.at("corpus").items()) corpus.add(about_file.dump());
    about.corpus = corpus_name();
    about.corpus_sha256 = corpus.hex();
    about.limit = job().input.limit;
    about.page_size = kPageSize;
    about.kv_bytes_per_token = engines_->backend(0).kv_bytes_per_token();
    about.usd_per_hour = job().cost.usd_per_hour;
    about.devices = job().cost.devices;
    for (size_t i = 0; i < engines_->size(); ++i) about.engines.push_back({engines_->name(i)});
    return about;
  }

  /// What only a run folder has room for.
  void check_stream() const {
    const auto refuse_there = [](const char* what) {
      refuse("{} needs an output folder; leave it out where rows go to a stream", what);
    };
    if (settings_.restart) refuse_there("--restart");
    if (!settings_.reuse.runs_of(job()).empty()) refuse_there("--reuse or output.reuse");
    if (job().output.format == OutputFormat::openai_batch) refuse_there("output.format openai-batch");
  }

  /// Before anything is written.
  void check_reuse() const {
    const std::vector<std::string> runs = settings_.reuse.runs_of(job());
    if (runs.empty() && (!settings_.reuse.required.empty() || settings_.reuse.if_exists))
      refuse("{} needs --reuse or output.reuse; name the runs whose answers are to be taken",
             settings_.reuse.required.empty() ? "--reuse-if-exists" : "--require-reuse");
    if (!settings_.reuse.required.empty()) parse_share(settings_.reuse.required, "--require-reuse");
    if (runs.empty()) return;
    answers_together(job().method);
    for (const std::string& run : runs)
      if (!settings_.restart && !is_uri(run) && settle_path(run) == settle_path(job().output.path))
        refuse("output.reuse: {} is this run's own output.path; add --restart, or choose another output.path",
               run);
  }

  /// Opens the answers of earlier runs, before anything is written. False where it was interrupted.
  bool open_earlier() {
    const nlohmann::ordered_json settings = answer_settings(job(), fingerprint_);
    earlier_.emplace(settings_.reuse, job(),
                     std::vector<std::string>{job().output.path, settings_.published_to}, settings);
    // A finished run takes no answers any more, and its folder says so.
    if (!earlier_->asked() || (!settings_.restart && file_size(job().output.path + "/_SUCCESS"))) return true;
    for (const std::string& notice : earlier_->notices()) listener_.note(notice);
    if (!settings_.reuse.required.empty() && !earlier_->is_first() && !check_reused_share(settings))
      return false;
    for (const std::string& warning : earlier_->warnings())
      listener_.warn(warning + (earlier_->usable() ? "; they are decoded unless another run has them"
                                                   : "; every answer is decoded"));
    return true;
  }

  /// Refuses where too little is known (--require-reuse). False where it was interrupted.
  bool check_reused_share(const nlohmann::ordered_json& settings) {
    std::unique_ptr<Corpus> corpus = opened_.corpus();
    if (shard_.count > 1) corpus = first_rows(std::move(corpus), shard_.end);
    corpus->skip_to(shard_.first);
    const auto task = opened_.task(job());
    const auto known = count_known(*corpus, *task, job(), settings, *earlier_);
    if (known) check_required_reuse(settings_.reuse.required, *known, *earlier_);
    return known.has_value();
  }

  /// Where the answers of this run go, beside those of earlier ones.
  void open_answers() {
    if (!folder_ || planner_->scope() == AnswerScope::prompt) return;
    const nlohmann::ordered_json settings = answer_settings(job(), fingerprint_);
    answers_.emplace(real_files(), settle_path(folder_path()), position_before_, shard_.first);
    reuse_.emplace(AnswerKeys(settings, job().method.temperature > 0), *answers_, earlier_->answers());
    pipeline_->known.store = &*reuse_;
  }

  /// Stops the run as a signal would once a limit of the session is reached.
  void check_limits() {
    if (!limit_.empty()) return;
    const double hours = std::chrono::duration<double, std::ratio<3600>>(Clock::now() - begun_).count();
    const double usd = hours * job().cost.usd_per_hour * job().cost.devices;
    if (settings_.max_hours > 0 && hours >= settings_.max_hours)
      limit_ = fmt::format("stopped after {:.2g} hours (--max-hours)", hours);
    else if (settings_.max_usd > 0 && usd >= settings_.max_usd)
      limit_ = fmt::format("stopped after ${:.2f} (--max-usd)", usd);
    else
      return;
    *job().stop = true;
  }

  void lose_engine(size_t engine, const std::string& why) {
    count_->add([&](Report& session) { session.engines[engine].failed = why; });
    const int64_t left = count_->engines_left();
    listener_.note(fmt::format("{} failed: {}; the run continues without it, on {}", engines_->name(engine),
                               why, counted(left, "device")));
  }

  void count_step(size_t engine, const EngineStats& stats) {
    const PipelineStats done = pipeline_->stats();
    check_limits();
    count_->add([&](Report& session) { session.statistics.step(stats, done); });
    count_->step(engine, pipeline_->engine_stats(engine), *engines_);
    predicted_[engine] = engines_->predicted_seconds(engine);
    if (predicted_[engine]) {
      // A busy machine takes longer than the device profile knows of.
      const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
      const bool busy =
          !opened_.on_gpu() && disturbed(used_before_, process_use(), seconds, opened_.threads());
      double predicted = 0;
      for (const std::optional<double>& each : predicted_) predicted += each.value_or(0);
      count_->add([&](Report& session) {
        session.predicted_seconds = busy ? std::nullopt : std::optional(predicted);
        session.predicted_error = engines_->predicted_error();
      });
    }
    if (!records_to_come_ && done.share_read.value_or(0) > 0) {
      const int64_t all = std::llround(static_cast<double>(done.rows_read) / *done.share_read);
      count_->expect(all - shard_.first);
      listener_.guess(all - position_before_);
    }
    listener_.step(
        {done.decoded, done.rejects, stats.tokens(), job().cost.usd_per_hour * job().cost.devices / 3600});
  }

  /// What the store did, once all of it is done.
  void end_store() {
    DiskKvStore* store = engines_->store();
    if (!store) return;
    store->flush();
    const KvStoreUse use = store->use();
    count_->add([&](Report& session) { session.store = use; });
    if (pipeline_->engine_stats().read_tokens + use.kept_tokens + use.unkept_tokens + use.dearer_tokens ==
            0 &&
        pipeline_->stats().answers > 0)
      listener_.note(fmt::format(
          "engine.kv_store: this run neither read nor kept anything: method.name {} does not share "
          "documents between prompts",
          job().method.name));
    for (const std::string& notice : store->take_notices()) listener_.note(notice);
  }

  /// A run that lost its whole corpus is no success.
  void check_rows(const nlohmann::ordered_json& report) {
    if (sink_->rows() > 0) return;
    // A small corpus leaves some of many shards without a record, and bad records may lie together in one, or
    // be told by the shard before it: that is no reason to stop the others.
    const bool left_out =
        shard_.count > 1 && (sink_->rejects() > 0 || opened_.corpus()->count_records(1) > 0);
    if (settings_.allow_empty || left_out) {
      listener_.note(fmt::format("{}: the run has no rows{}", folder_ ? job().output.path : job().file,
                                 sink_->rejects() > 0 ? "; all its records were rejected" : ""));
      return;
    }
    count_->save();
    if (folder_) folder_->show_rejects();
    check_not_lost(corpus_name(), sink_->rejects(), sink_->rejects(), report.at("reject_reasons"),
                   folder_ ? folder_path() + "/rejects.jsonl" : "");
  }

  const RunSettings& settings_;
  RunListener& listener_;
  const MostRejects most_rejects_;
  OpenedJob opened_;

  std::unique_ptr<Corpus> corpus_;
  const RepeatedIds* ids_ = nullptr;  ///< the corpus, where its records have ids
  Shard shard_;
  nlohmann::ordered_json fingerprint_;
  std::optional<Restart> restart_;
  std::optional<RunFolder> folder_;  ///< none where the rows go to a stream
  RowSink* sink_ = nullptr;          ///< the folder or the stream
  int64_t position_before_ = 0;      ///< where earlier sessions came to

  std::optional<AnswerLog> answers_;
  std::optional<EarlierRuns> earlier_;
  std::optional<Reuse> reuse_;

  std::optional<Engines> engines_;
  std::vector<std::optional<double>> predicted_;  ///< seconds, per engine
  using Clock = std::chrono::steady_clock;
  Clock::time_point started_;
  ProcessUse used_before_;
  std::optional<RunCount> count_;
  std::unique_ptr<Task> task_;
  std::optional<ConfidenceScales> scales_;
  std::optional<TrustedRun> trusted_;
  std::optional<Planner> planner_;
  std::optional<Pipeline> pipeline_;
  std::optional<int64_t> records_to_come_;
  const Clock::time_point begun_ = Clock::now();
  std::string limit_;  ///< which of the session's limits was reached
};

}  // namespace

RunEnd run_job(const Job& asked, const RunSettings& settings, RunListener& listener) {
  if (is_uri(asked.output.path) && !settings.stream) return run_stored_job(asked, settings, listener);
  JobRun run(asked, settings, listener);
  if (std::optional<RunEnd> end = run.open()) return *std::move(end);
  run.wire();
  return run.run() ? run.finish() : run.interrupted();
}

}  // namespace sheaf

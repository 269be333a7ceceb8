#include "app/python/calls.h"

#include <arrow/c/abi.h>

#include "core/base/error.h"
#include "core/base/interrupted.h"
#include "core/text/json_reader.h"
#include "io/base/file_layer.h"
#include "io/base/paths.h"
#include "io/base/sha256.h"
#include "io/base/store_uri.h"
#include "io/base/table_stream.h"
#include "io/estimate/estimate_answer.h"
#include "io/files/job_file.h"
#include "io/files/score_run.h"
#include "io/jobs/describe_path.h"
#include "io/jobs/finished_run.h"
#include "io/jobs/open_model.h"
#include "io/jobs/plan_job.h"
#include "io/run_folder/manifest.h"
#include "io/run_folder/read_rows.h"

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kTable = "the table";
constexpr const char* kJob = "job";  // a dict, in messages
constexpr int kBetweenLooks = 50;    // milliseconds

std::string dump(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// A temporary file as one that rows are written to.
class ScratchRows : public OutputFile {
 public:
  explicit ScratchRows(ScratchFile& file) : file_(file) {}
  void append(std::string_view bytes) override { file_.append(bytes); }
  void truncate(int64_t) override { fail("a temporary file cannot be cut short"); }
  void sync() override {}

 private:
  ScratchFile& file_;
};

/// Rows in a temporary file.
class ScratchedRows : public KeptRows {
 public:
  explicit ScratchedRows(std::shared_ptr<ScratchFile> file) : file_(std::move(file)) {}
  void export_to(ArrowArrayStream* stream) override { export_copy(file_, stream); }

 private:
  std::shared_ptr<ScratchFile> file_;
};

/// Rows of a run folder, which are read when somebody wants them.
class FolderRows : public KeptRows {
 public:
  explicit FolderRows(const Job& job) : window_(job.engine.window), folder_(job.output.path) {
    try {  // a run is fine whose rows are no table
      if (is_uri(folder_) || job.output.format == OutputFormat::openai_batch)
        refuse(
            "{}: rows of an output.path that is a URI, and of output.format openai-batch, cannot be read as "
            "a table; read its files",
            folder_);
      folder_ = std::filesystem::absolute(folder_).string();
      schema_ = job.task.schema.empty() ? Schema() : read_schema(job);
      columns_ = row_columns(job, schema_, has_integer_ids(job.input));
      manifest_ = manifest_text();
    } catch (...) {
      trouble_ = std::current_exception();
    }
  }

  void export_to(ArrowArrayStream* stream) override {
    const std::lock_guard lock(mutex_);
    if (!file_) file_ = read();
    export_copy(file_, stream);
  }

 private:
  std::shared_ptr<ScratchFile> read() const {
    if (trouble_) std::rethrow_exception(trouble_);
    if (manifest_text() != manifest_)
      refuse("{}: another run has replaced the rows of this one; read them before, or give it another folder",
             folder_);
    auto file = std::make_shared<ScratchFile>(folder_);
    ScratchRows target(*file);
    RowStream rows(target);
    rows.open(columns_);
    int64_t count = 0;
    const Manifest manifest = parse_manifest(manifest_, folder_ + "/manifest.json", kRunAgain);
    read_rows(folder_, manifest, schema_, [&](Row&& row) {
      rows.row(row);
      if (++count % window_ == 0) rows.commit(count, true);
    });
    rows.commit(count, true);
    rows.close();
    return file;
  }

  std::string manifest_text() const {
    const std::string path = folder_ + "/manifest.json";
    const auto text = read_whole(path);
    if (!text) refuse("{}: the file is gone; {}", path, kRunAgain);
    return *text;
  }

  static constexpr const char* kRunAgain = "run the job again with restart";
  int32_t window_;
  std::string folder_;
  Schema schema_;
  std::vector<RowColumn> columns_;
  std::string manifest_;        ///< its text when the run ended
  std::exception_ptr trouble_;  ///< why the rows are no table; null: they are
  std::mutex mutex_;
  std::shared_ptr<ScratchFile> file_;
};

/// The value at a path of keys; null where there is none.
const YamlNode* find(const YamlNode& root, std::string_view path) {
  const size_t dot = path.find('.');
  for (const YamlNode::Entry& entry : root.entries)
    if (entry.key == path.substr(0, dot))
      return dot == path.npos ? entry.value.get() : find(*entry.value, path.substr(dot + 1));
  return nullptr;
}

bool is_given(const YamlNode& root, std::string_view path) {
  const YamlNode* const node = find(root, path);
  return node && node->kind != YamlNode::Kind::null;
}

struct JobText {
  std::string file;
  YamlPtr root;
};

JobText job_text(const json& request) {
  const json& job = request.at("job");
  if (job.contains("path")) {
    const auto path = job.at("path").get<std::string>();
    return {path, read_job_yaml(path)};
  }
  return {kJob, parse_yaml(kJob, dump(job.at("dict")), 0)};
}

void add_changes(const json& request, std::vector<JobChange>& changes) {
  const json set = request.value("set", json::object());
  for (const auto& [key, value] : set.items())
    changes.push_back({key, parse_yaml("set " + key, dump(value), 0)});
}

std::vector<std::string> override_texts(const json& request) {
  std::vector<std::string> texts;
  const json set = request.value("set", json::object());
  for (const auto& [key, value] : set.items()) texts.push_back(fmt::format("{}={}", key, dump(value)));
  return texts;
}

ordered_json score(const json& request, CallListener& listener) {
  ScoreSettings settings;
  settings.metric = request.value("metric", "");
  settings.gold = request.value("gold", "");
  settings.job = request.value("job", "");
  settings.gold_columns = request.value("gold_columns", std::vector<std::string>());
  settings.predictions = request.value("predictions", "");
  settings.against = request.value("against", "");
  settings.schema = request.value("schema", "");
  settings.join.skip_missing = request.value("skip_missing", false);
  settings.options.resamples = request.value("resamples", settings.options.resamples);
  settings.options.seed = request.value("seed", settings.options.seed);
  const auto note = [&](const std::string& text) { listener.note(text); };
  take_types(settings, note);
  return score_json(score_run(settings, note).report);
}

ordered_json estimate(const json& request) {
  EstimateAsked asked;
  JobText job = job_text(request);
  asked.job = job.file;
  asked.root = std::move(job.root);
  asked.overrides = override_texts(request);
  // It writes no rows.
  if (!is_given(*asked.root, "output.path") && !request.value("set", json::object()).contains("output.path"))
    asked.overrides.push_back("output.path=out");
  asked.hardware = request.value("hardware", "");
  asked.model = request.value("model", "");
  if (const auto records = request.value("records", int64_t{0}); records > 0) asked.records = records;
  if (const auto devices = request.value("devices", 0); devices > 0) asked.devices = devices;
  return estimate_answer(asked);
}

constexpr size_t kMostRejects = 1000;

/// All rejects in a run folder, also those of earlier calls that this one resumed.
ordered_json folder_rejects(const std::string& folder) {
  ordered_json rejects = ordered_json::array();
  const std::string path = folder + "/rejects.jsonl";
  if (is_there(path))
    read_lines(path, [&](const std::string& line) {
      if (rejects.size() < kMostRejects) rejects.push_back(read_json<ordered_json>(line));
    });
  return rejects;
}

/// Refuses a model whose current run reads a table that this thread makes: the two would wait for each other.
std::shared_ptr<KeptModel> free_model(std::shared_ptr<KeptModel> model) {
  if (model && model->user == own_stop)
    refuse(
        "the table: its batches are made by runs of the engine that reads it; use another engine for them");
  return model;
}

}  // namespace

void CallListener::note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  notes_.push_back(text);
}

void CallListener::rejected(const Reject& reject) {
  const std::lock_guard lock(mutex_);
  if (rejects_.size() < kMostRejects)
    rejects_.push_back({{"file", reject.place.file},
                        {"row", reject.place.row},
                        {"id", reject.id},
                        {"reason", reject.reason}});
}

void CallListener::started(std::optional<int64_t> records) {
  const std::lock_guard lock(mutex_);
  state_ = {{}, records};
  begun_ = Clock::now();
}

void CallListener::guess(int64_t records) {
  const std::lock_guard lock(mutex_);
  state_.total = records;
  state_.guessed = true;
}

void CallListener::step(const RunState& state) {
  const std::lock_guard lock(mutex_);
  state_.session = state;
  state_.seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  stepped_ = true;
}

std::string CallListener::progress() const {
  const std::lock_guard lock(mutex_);
  if (!stepped_) return {};
  const RunState& session = state_.session;
  return dump({{"records", session.records},
               {"rejects", session.rejects},
               {"tokens", session.tokens},
               {"total", state_.total ? ordered_json(*state_.total) : ordered_json()},
               {"text", progress_line(state_)}});
}

ordered_json CallListener::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}

ordered_json CallListener::rejects() const {
  const std::lock_guard lock(mutex_);
  return rejects_;
}

Call::Call(std::string kind, std::string request, std::shared_ptr<KeptModel> model, ArrowArrayStream* table)
    : kind_(std::move(kind)),
      model_(free_model(std::move(model))),
      table_(table),
      thread_([this, text = std::move(request)] { work(text); }) {}

Call::~Call() {
  stop_ = true;
  thread_.join();
}

bool Call::wait(int milliseconds) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return done_; });
}

void Call::work(const std::string& request) {
  own_stop = &stop_;
  try {
    const json asked = read_json(request, {.values = 1'000'000});
    if (asked.is_discarded())
      refuse(
          "the job has a text that is not valid Unicode, or it has too many values; correct the text, or "
          "make the job smaller");
    result_ = dump({{"result", answer(asked)}});
  } catch (...) {
    result_ = dump(describe_failure());
  }
  model_.reset();  // a Run may live longer than the engine that made it
  const std::lock_guard lock(mutex_);
  done_ = true;
  ended_.notify_all();
}

ArrowArrayStream* Call::rows() {
  if (!rows_) fail("the call has no rows");
  auto stream = std::make_unique<ArrowArrayStream>();
  stream->release = nullptr;
  rows_->export_to(stream.get());
  return stream.release();
}

ordered_json Call::answer(const json& request) {
  if (kind_ == "open") return open(request);
  if (kind_ == "run") return run(request);
  if (kind_ == "plan") return plan(request);
  if (kind_ == "estimate") return estimate(request);
  if (kind_ == "score") return score(request, listener_);
  if (kind_ == "inspect") return describe_path({request.at("path"), request.value("model", ""), ""});
  fail("unknown call {}", kind_);
}

ordered_json Call::open(const json& request) {
  JobText text = job_text(request);
  if (request.at("job").contains("path")) {  // the rest of a job file is of no concern
    auto sections = std::make_shared<YamlNode>(*text.root);
    std::erase_if(sections->entries,
                  [](const YamlNode::Entry& entry) { return entry.key != "model" && entry.key != "engine"; });
    text.root = sections;
  }
  Job job = read_model_sections(text.file, text.root);
  job.stop = &stop_;
  auto kept = std::make_shared<KeptModel>();
  kept->sections = text.root;
  kept->model = std::make_shared<OpenModel>(job);
  if (stop_) fail_for_now("interrupted while the model was opened");
  kept->model->backends();
  opened_ = std::move(kept);
  return {{"model", job.model.path}, {"notes", opened_->model->notices()}};
}

/// `folder`: the call may write an output folder.
Job Call::read_job(const json& request, bool folder) {
  JobText text = job_text(request);
  JobReading reading;
  if (model_)
    for (const char* section : {"model", "engine"})
      if (const YamlNode* const own = find(*model_->sections, section))
        for (const YamlNode::Entry& entry : own->entries)
          if (const std::string path = fmt::format("{}.{}", section, entry.key); !find(*text.root, path))
            reading.changes.push_back({path, entry.value});
  add_changes(request, reading.changes);
  const json output = request.value("output", json());
  if (output.is_string())
    reading.changes.push_back({"output.path", option_text("output", output.get<std::string>())});
  const bool set = request.value("set", json::object()).contains("output.path");
  reading.streams_rows =
      !folder || output == false || !(output.is_string() || set || is_given(*text.root, "output.path"));
  if (reading.streams_rows) reading.changes.push_back({"output.format", option_text("output", "arrow")});
  if (table_)
    reading.table = std::make_shared<TableInput>(kTable, [this] { return open_c_stream(table_, kTable); });
  reading.root = text.root;
  Job job = read_job_as(text.file, reading);
  job.stop = &stop_;
  if (request.value("limit", int64_t{0}) > 0) job.input.limit = request.at("limit").get<int64_t>();
  if (reading.streams_rows) job.output.path.clear();
  if (!table_ || (kind_ == "run" && reading.streams_rows && job.input.context_id.empty())) return job;
  // Plans read it twice, and a run that may be resumed must know it again.
  copy_ = std::make_unique<ScratchFile>(job.output.path);
  copy_c_stream(table_, kTable, *copy_, stop_);
  Sha256 sum;
  read_pieces(copy_->path(), [&](std::string_view piece) { sum.add(piece); });
  job.input.standard_input = {copy_->path(), copy_->size(), sum.hex()};
  job.input.table = std::make_shared<TableInput>(
      kTable, [file = copy_.get()] { return open_copy(*file, kTable); }, true);
  return job;
}

ordered_json Call::run(const json& request) {
  std::unique_lock<std::timed_mutex> turn;
  if (model_) turn = std::unique_lock(model_->turn, std::defer_lock);
  while (turn.mutex() && !turn.try_lock_for(std::chrono::milliseconds(kBetweenLooks)))
    if (stop_) fail_for_now("interrupted while another run uses the model");
  const auto leave = [](KeptModel* model) { model->user = nullptr; };
  const std::unique_ptr<KeptModel, decltype(leave)> in_use(model_.get(), leave);
  if (in_use) in_use->user = &stop_;
  const Job job = read_job(request, true);
  const bool streams = !job.output.needs_path;
  RunSettings settings;
  settings.restart = request.value("restart", false);
  settings.allow_empty = request.value("allow_empty", false);
  settings.reuse.runs = request.value("reuse", std::vector<std::string>());
  if (model_) settings.model = model_->model;
  const auto file = streams ? std::make_shared<ScratchFile>("") : nullptr;
  std::optional<ScratchRows> target;
  std::optional<RowStream> stream;
  if (streams) settings.stream = &stream.emplace(target.emplace(*file));
  const RunEnd end = run_job(job, settings, listener_);
  const int64_t rows = end.report.is_object() ? end.report.at("rows").get<int64_t>() : 0;
  if (end.interrupted.empty()) {
    if (streams)
      rows_ = std::make_unique<ScratchedRows>(file);
    else
      rows_ = std::make_unique<FolderRows>(job);
  }
  const bool earlier = !streams && !is_uri(job.output.path) && end.interrupted.empty();
  return {{"rows", rows},
          {"report", end.report},
          {"rejects", earlier ? folder_rejects(job.output.path) : listener_.rejects()},
          {"notes", listener_.notes()},
          {"output", streams ? ordered_json() : ordered_json(job.output.path)},
          {"finished", end.was_finished},
          {"interrupted", end.interrupted}};
}

ordered_json Call::plan(const json& request) {
  OpenedJob opened(read_job(request, false));
  const auto made = plan_job(opened, request.value("answer_tokens", 8), false,
                             [](int64_t, const Stack&, const std::vector<Record>&) {});
  if (!made) fail_for_now("interrupted while planning");
  return made->json();
}

}  // namespace sheaf

#include "io/eval/lengths.h"

#include <algorithm>
#include <filesystem>
#include <fmt/ranges.h>
#include <initializer_list>
#include <random>

#include "core/base/error.h"
#include "core/estimate/device_model.h"
#include "core/methods/method.h"
#include "core/text/json_reader.h"
#include "io/files/hardware_file.h"
#include "io/jobs/bench.h"
#include "io/jobs/no_attention.h"
#include "io/jobs/opened_job.h"
#include "io/model/model_config.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr Range<int64_t> kLength{1, 1 << 20};
constexpr Range<int64_t> kCount{1, 1000};  // of what is listed
constexpr uint32_t kSeed = 7;

const std::vector<std::string> kKeys = {
    "model.path",          "method.name",          "method.documents",    "method.questions",
    "method.speculate",    "method.prompt_tokens", "engine.device",       "engine.tokens_per_step",
    "engine.kv_memory_gb", "engine.prompts",       "engine.reproducible", "cost.usd_per_hour",
    "cost.devices"};

constexpr const char* kFile = "timing.json";

constexpr std::pair<const char*, int32_t EvalLengths::*> kSizes[] = {
    {"instruction_tokens", &EvalLengths::instruction_tokens},
    {"documents", &EvalLengths::documents},
    {"documents_per_record", &EvalLengths::documents_per_record},
    {"document_tokens", &EvalLengths::document_tokens},
    {"questions", &EvalLengths::questions},
    {"question_tokens", &EvalLengths::question_tokens},
    {"answer_tokens", &EvalLengths::answer_tokens}};

/// Lengths of lists of objects and of whole objects.
constexpr std::tuple<const char*, int32_t EvalLengths::*, Range<int64_t>> kSizesOfObjects[] = {
    {"object_tokens", &EvalLengths::object_tokens, kLength},
    {"entries", &EvalLengths::entries, kCount},
    {"anchor_tokens", &EvalLengths::anchor_tokens, kCount},
    {"entry_questions", &EvalLengths::entry_questions, kCount}};

/// Where a method asks for all of a document at once: one answer with questions and answers.
EvalLengths as_asked(EvalLengths lengths, const Job::Method& method) {
  if (!lengths.object || !asks_for_objects(method)) return lengths;
  if (lengths.samples > 1)
    refuse("datasets.lengths: samples does not work with object where a method asks for all at once");
  const int64_t pair = int64_t{lengths.question_tokens} + lengths.answer_tokens;
  const int64_t entry = lengths.question_tokens + lengths.anchor_tokens + lengths.entry_questions * pair;
  const int64_t list = lengths.entries > 0 ? lengths.question_tokens + lengths.entries * entry : 0;
  const int64_t all = lengths.object_tokens > 0 ? lengths.object_tokens : lengths.questions * pair + list;
  if (all > kLength.most)
    refuse("datasets.lengths: a whole object would have {} tokens, more than {}; lower questions or entries",
           all, kLength.most);
  lengths.answer_tokens = static_cast<int32_t>(all);
  lengths.questions = 1;
  lengths.entries = 0;
  return lengths;
}

/// The question for a document's list of objects, whose entries the second round asks about.
QuestionParts list_question(const EvalLengths& lengths, const std::function<Tokens(int32_t)>& tokens) {
  auto parts = std::make_shared<EntryParts>();
  const auto count = static_cast<size_t>(lengths.entries);
  const Tokens opened = tokens(lengths.question_tokens + lengths.anchor_tokens);
  parts->entries = [=](const Tokens&) { return std::vector<Tokens>(count, opened); };
  parts->most_entries = count;
  parts->most_tokens = opened.size();
  for (int32_t q = 0; q < lengths.entry_questions; ++q)
    parts->questions.push_back({tokens(lengths.question_tokens), lengths.answer_tokens, Stop::text, nullptr});
  QuestionParts list{tokens(lengths.question_tokens), lengths.entries * lengths.anchor_tokens, Stop::text,
                     nullptr};
  list.entries = std::move(parts);
  return list;
}

/// The rows of a workload whose answers have `answer_tokens`.
Workload make_rows(const EvalLengths& lengths, const Job::Method& method, int32_t answer_tokens,
                   int32_t vocab) {
  const bool apart = find_method(method.name).wording.one_by_one;
  std::mt19937 random(kSeed);
  const auto tokens = [&](int32_t count) {
    Tokens made;
    for (int32_t i = 0; i < count; ++i)
      made.push_back(static_cast<TokenId>(random() % static_cast<uint32_t>(vocab)));
    return made;
  };
  /// `answers`: how many questions and samples a record has.
  const auto add_documents = [&](RecordParts& record, int64_t answers) {
    record.document.clear();
    record.documents.clear();
    for (int32_t i = 0; i < lengths.documents_per_record; ++i) {
      Tokens document = tokens(lengths.document_tokens);
      if (apart)
        record.documents.push_back(
            {std::move(document), std::vector<float>(static_cast<size_t>(answers), 0.5f)});
      else
        append(record.document, document);
    }
  };
  Workload workload;
  workload.name = "lengths";
  workload.vocab = vocab;
  workload.common = lengths.instruction_tokens;
  workload.questions = lengths.asked();
  auto bin = std::make_shared<BinParts>();
  bin->instruction = tokens(lengths.instruction_tokens);
  std::vector<RecordParts> records;
  for (int32_t d = 0; d < lengths.documents; ++d) {
    RecordParts record;
    record.bin = bin;
    record.record = d;
    record.stream = static_cast<uint64_t>(d);
    record.samples = lengths.samples;
    add_documents(record, int64_t{lengths.questions} * lengths.samples);
    for (int32_t q = 0; q < lengths.questions; ++q)
      record.own_questions.insert(record.own_questions.end(), static_cast<size_t>(lengths.samples),
                                  {tokens(lengths.question_tokens), answer_tokens, Stop::text, nullptr});
    if (lengths.entries > 0) record.own_questions.push_back(list_question(lengths, tokens));
    if (lengths.share_documents) {
      records.push_back(std::move(record));
      continue;
    }
    // Equal documents would be one and the same.
    for (const QuestionParts& question : record.own_questions) {
      RecordParts& alone = records.emplace_back(record);
      add_documents(alone, 1);
      alone.samples = 1;
      alone.own_questions = {question};
    }
  }
  workload.bins.push_back(std::move(records));
  return workload;
}

/// What a measurement is of. Another one is not taken in its place.
ordered_json describe(const Job& job, const EvalLengths& lengths) {
  ordered_json sizes;
  // Measurements of earlier versions are of one document in a record.
  for (const auto& [key, size] : kSizes)
    if (size != &EvalLengths::documents_per_record || lengths.*size > 1) sizes[key] = lengths.*size;
  // Nor have they lists.
  for (const auto& [key, size, range] : kSizesOfObjects)
    if (lengths.*size != EvalLengths().*size) sizes[key] = lengths.*size;
  sizes["count"] = lengths.count;
  sizes["decoding_only"] = lengths.decoding_only;
  sizes["runs"] = lengths.runs;
  if (lengths.object) sizes["object"] = true;
  if (lengths.samples > 1) sizes["samples"] = lengths.samples;
  if (!lengths.attention) sizes["attention"] = false;
  if (!lengths.share_documents) sizes["share_documents"] = false;
  ordered_json measured{{"model", job.model.path},
                        {"lengths", sizes},
                        {"method",
                         {{"name", job.method.name},
                          {"documents", job.method.documents},
                          {"prompt_tokens", job.method.prompt_tokens}}},
                        {"engine",
                         {{"device", device_text(job.engine.device)},
                          {"tokens_per_step", job.engine.tokens_per_step},
                          {"kv_memory_gb", job.engine.kv_memory_gb},
                          {"prompts", job.engine.prompts},
                          {"reproducible", job.engine.reproducible}}}};
  // Measurements of earlier versions have no limit.
  if (job.method.questions > 0) measured["method"]["questions"] = job.method.questions;
  if (!job.method.speculate.draft.empty())
    measured["speculate"] = {{"draft", job.method.speculate.draft},
                             {"always", job.method.speculate.always},
                             {"accepted", lengths.accepted}};
  return measured;
}

/// Whether what a file holds has every figure that a row of the table needs.
bool is_measurement(const ordered_json& read) {
  if (!read.is_object() || !read.contains("measured")) return false;
  const auto all = [&](std::initializer_list<const char*> keys, auto&& fits) {
    return std::ranges::all_of(keys, [&](const char* key) { return !read.contains(key) || fits(read[key]); });
  };
  return (read.contains("seconds") || read.contains("not_measured")) &&
         all({"seconds", "predicted_seconds", "memory_gb"},
             [](const ordered_json& value) { return value.is_number() && value.get<double>() > 0; }) &&
         all({"not_measured", "backend", "weights"},
             [](const ordered_json& value) { return value.is_string(); });
}

bool has_weights(const std::string& path) {
  if (fs::path(path).extension() == ".gguf" || fs::path(path).extension() == ".safetensors")
    return fs::is_regular_file(path);
  if (!fs::is_directory(path)) return false;
  const fs::directory_iterator files(path);
  return std::any_of(begin(files), end(files), [](const fs::directory_entry& file) {
    return file.path().extension() == ".safetensors";
  });
}

std::unique_ptr<BenchBackend> open_backend(const Job& job, const std::string& model) {
  const bool weights = has_weights(model);
  return std::make_unique<BenchBackend>(
      BenchModel{weights ? "" : model, weights ? model : "", job.engine.device, job.engine.reproducible, 0});
}

constexpr const char* kProbeShape = "smollm2-135m";

/// Passes steps on, and tells that they are done.
class ToldSteps final : public StepObserver {
 public:
  ToldSteps(StepObserver* inner, std::function<void(int64_t steps)> tell)
      : inner_(inner), tell_(std::move(tell)) {}

  void start(const StepBatch& batch) override {
    if (inner_) inner_->start(batch);
  }
  void finish() override {
    if (inner_) inner_->finish();
    tell_(++steps_);
  }

 private:
  StepObserver* inner_;
  std::function<void(int64_t steps)> tell_;
  int64_t steps_ = 0;
};

std::string too_long_text(int64_t positions, int32_t context) {
  return fmt::format("a prompt needs {} positions, but the model has {}", positions, context);
}

int64_t positions_of(const EvalLengths& lengths, const Job::Method& method, int32_t answer_tokens) {
  const int64_t together = find_method(method.name).wording.one_by_one ? 1 : lengths.documents_per_record;
  const int64_t list = int64_t{lengths.entries} * lengths.anchor_tokens;
  const int64_t entry = lengths.entry_questions > 0
                            ? 2 * lengths.question_tokens + lengths.anchor_tokens + lengths.answer_tokens
                            : 0;
  const int64_t longest =
      std::max({int64_t{lengths.question_tokens} + answer_tokens,
                lengths.entries > 0 ? lengths.question_tokens + list : 0, lengths.entries > 0 ? entry : 0});
  return lengths.instruction_tokens + together * lengths.document_tokens + longest - 1;
}

/// Bytes for keys and values: what the job asks for, else what is `left` on the device.
int64_t kv_room(const Job& job, int64_t left) {
  return job.engine.kv_memory_gb > 0 ? static_cast<int64_t>(job.engine.kv_memory_gb * 1024 * 1024 * 1024)
                                     : left;
}

EngineOptions engine_options(const Job& job, const Backend& backend, int64_t room,
                             const std::vector<Stack>& stacks) {
  EngineOptions engine;
  engine.tokens_per_step =
      job.engine.tokens_per_step > 0 ? job.engine.tokens_per_step : backend.preferred_tokens();
  engine.prompts = job.engine.prompts;
  engine.interrupted = job.stop;
  const int64_t page_bytes = backend.kv_bytes_per_token() * engine.page_size;
  const int64_t pages = std::min(room / page_bytes, most_pages(stacks, engine.page_size));
  engine.pages = static_cast<int32_t>(std::clamp<int64_t>(pages, 1, INT32_MAX / engine.page_size));
  return engine;
}

}  // namespace

int64_t EvalLengths::asked() const {
  return int64_t{documents} *
         (int64_t{questions} * samples + (entries > 0 ? 1 + int64_t{entries} * entry_questions : 0));
}

int64_t EvalLengths::answered() const {
  const int64_t lists = entries > 0 ? documents : 0;
  return (asked() - lists) * answer_tokens + lists * entries * anchor_tokens;
}

int64_t EvalLengths::counted() const {
  return count == "documents" ? documents : count == "questions" ? asked() : answered();
}

EvalLengths read_lengths(const YamlPtr& node) {
  YamlMap map(node, "datasets.lengths");
  EvalLengths lengths;
  for (const auto& [key, size] : kSizes) map.integer(key, lengths.*size, kLength);
  for (const auto& [key, size, range] : kSizesOfObjects) map.integer(key, lengths.*size, range);
  map.integer("samples", lengths.samples, {1, 1 << 16});
  map.choice("count", lengths.count, {"tokens", "questions", "documents"});
  map.boolean("object", lengths.object);
  map.boolean("decoding_only", lengths.decoding_only);
  map.integer("runs", lengths.runs, {1, 100});
  for (const char* key : {"document_tokens", "answer_tokens"}) map.require(key);
  map.finish();
  for (const char* key : {"anchor_tokens", "entry_questions"})
    if (map.has(key) && lengths.entries == 0)
      refuse("{}: {} is about the entries of a list of objects; add entries, or leave it out", map.where(key),
             key);
  if (lengths.object_tokens > 0 && !lengths.object)
    refuse("{}: object_tokens is the length of an answer that holds everything; add object: true",
           map.where("object_tokens"));
  if (lengths.entries > 0 && lengths.decoding_only)
    refuse(
        "{}: what decoding takes alone cannot be told where a second round begins with new prompts; leave it "
        "out",
        map.where("decoding_only"));
  if (lengths.entries > 0 && lengths.samples > 1)
    refuse("{}: samples does not work with entries; leave it out", map.where("samples"));
  if (lengths.decoding_only && lengths.answer_tokens == 1)
    refuse("{}: decoding_only needs answer_tokens above 1, because the first token comes with the prompt",
           map.where("decoding_only"));
  return lengths;
}

void check_lengths_changes(const std::string& place, const std::vector<std::string>& keys) {
  for (const std::string& key : keys)
    if (std::ranges::find(kKeys, key) == kKeys.end())
      refuse("{}: {} has no effect on a dataset with lengths; the keys that have are {}", place, key,
             fmt::join(kKeys, ", "));
}

Job lengths_job(const std::string& file, const std::vector<JobChange>& changes) {
  const YamlPtr nothing =
      parse_yaml(file,
                 "{model: {path: none}, input: {path: none.jsonl, documents: none, questions: none}, "
                 "task: {kind: ask}, method: {name: ippd, documents: 0, prompt_tokens: 1000000000}, "
                 "output: {path: none}}",
                 0);
  Job job = read_job(file, nothing, changes, false);
  if (find_method(job.method.name).wording.findings)
    refuse(
        "{}: the method {} reads what a model finds, and records of lengths hold nothing to find; leave it "
        "out",
        file, job.method.name);
  return job;
}

void check_lengths_model(const std::string& model, const std::string& from) {
  if (!has_weights(model)) read_model_config(model, from);
}

void check_accepted(const std::string& place, const Job& job, double accepted) {
  const Speculate& speculate = job.method.speculate;
  if (speculate.lookup)
    refuse("{}: speculate: lookup finds guesses in texts, and records of lengths have none; use a draft",
           place);
  if (speculate.draft.empty() && accepted > 0)
    refuse("{}: accepted: the method has no draft; add speculate: {{draft: MODEL}}, or leave it out", place);
  if (!speculate.draft.empty() && accepted == 0)
    refuse(
        "{}: how many of the draft's tokens are right cannot be measured on made-up records; add accepted: "
        "0.8, "
        "or another share, to the method",
        place);
}

void check_entries(const std::string& place, const Job& job) {
  const Wording& wording = find_method(job.method.name).wording;
  if (wording.one_by_one || wording.answers == AnswerForm::list)
    refuse(
        "{}: the method {} cannot ask about the entries of a list of objects; skip it for datasets whose "
        "lengths have entries, or use ippd, separate or standard",
        place, job.method.name);
}

ordered_json measured_before(const Job& job, const EvalLengths& lengths) {
  ordered_json before = read_json<ordered_json>(read_whole(job.output.path + "/" + kFile).value_or(""));
  if (!is_measurement(before)) return nullptr;
  if (before.value("measured", ordered_json()) != describe(job, lengths))
    refuse(
        "{}: the folder contains a different measurement; choose another folder with --output, or measure "
        "everything again with --restart",
        job.output.path);
  return before;
}

LengthsBench::LengthsBench(FileLayer& files) : files_(files) {}
LengthsBench::~LengthsBench() = default;

void LengthsBench::open(const Job& job) {
  const std::string& draft = job.method.speculate.draft;
  const std::string key = fmt::format("{}\n{}\n{}\n{}", job.model.path, device_text(job.engine.device),
                                      job.engine.reproducible, draft);
  if (backend_ && opened_ == key) return;
  draft_.reset();  // free their memory first
  backend_.reset();
  backend_ = open_backend(job, job.model.path);
  if (!draft.empty()) draft_ = open_backend(job, draft);
  opened_ = key;
  const Backend& opened = backend_->backend();
  device_ = find_device_model(opened.device());
  if (device_ && !device_->measured_experts(opened.config())) device_.reset();
  kv_bytes_ = backend_->kv_bytes();
  most_pages_ = 0;
}

/// The median of the runs that count.
LengthsBench::Timed LengthsBench::time_answers(const Job& job, const EvalLengths& asked,
                                               int32_t answer_tokens,
                                               const std::function<void(int32_t, int64_t, double)>& on_step) {
  const EvalLengths lengths = as_asked(asked, job.method);
  const ModelConfig& config = backend_->config();
  NoAttention unseeing(backend_->backend());
  Backend& backend = lengths.attention ? backend_->backend() : unseeing;
  Timed timed;
  if (const int64_t positions = positions_of(lengths, job.method, answer_tokens);
      positions > config.context) {
    timed.trouble = too_long_text(positions, config.context);
    return timed;
  }
  const int32_t vocab = draft_ ? std::min(config.vocab, draft_->config().vocab) : config.vocab;
  const Workload workload = make_rows(lengths, job.method, answer_tokens, vocab);
  const std::vector<Stack> stacks = pack(workload, {job.method, job.engine.window}, config.context);
  const int64_t room = kv_room(job, kv_bytes_);
  EngineOptions engine = engine_options(job, backend, room, stacks);
  std::optional<Draft> draft;
  if (draft_) {
    const int64_t share = room / kDraftShare / (draft_->backend().kv_bytes_per_token() * engine.page_size);
    const int64_t wanted = std::clamp<int64_t>(share, 1, most_pages(stacks, engine.page_size));
    engine.speculation.assumed_right = lengths.accepted;
    engine.speculation.sparing = !job.method.speculate.always;
    engine.speculation.draft = &draft.emplace(
        draft_->backend(), DraftOptions{std::min(kDraftStep, draft_->backend().preferred_tokens()),
                                        static_cast<int32_t>(wanted), engine.page_size});
  }
  for (const Stack& stack : stacks)
    if (pages_at_once(stack, engine.page_size) > engine.pages) {
      timed.trouble = "a prompt does not fit the memory left for keys and values";
      return timed;
    }
  std::vector<BenchRun> runs;
  for (int32_t i = 0; i < lengths.runs; ++i) {
    std::optional<PredictedTime> predicted;
    if (device_ && lengths.attention) predicted.emplace(backend.config(), *device_);
    ToldSteps told(predicted ? &*predicted : nullptr, [&](int64_t steps) {
      if (on_step) on_step(i, steps, predicted ? predicted->seconds() : 0);
    });
    engine.observer = &told;
    runs.push_back(run_once(backend, engine, stacks));
    if (predicted && !draft) timed.predicted = predicted->seconds();  // a draft's steps are not in it
    if (*job.stop) return timed;
    EvalLengths decoded = lengths;
    decoded.answer_tokens = answer_tokens;
    const int64_t wanted = decoded.answered(), got = runs.back().stats.answer_tokens;
    if (got != wanted) fail("{} answer tokens were decoded, but {} were expected", got, wanted);
  }
  if (runs.size() > 1) runs.erase(runs.begin());
  std::ranges::sort(runs, {}, &BenchRun::seconds);
  const BenchRun& median = runs[runs.size() / 2];
  timed.seconds = median.seconds;
  timed.steps = median.stats.steps;
  timed.proposed = median.stats.proposed_tokens;
  timed.accepted = median.stats.accepted_tokens;
  // The pool only grows, so most of it may be of an earlier measurement.
  most_pages_ = std::max(most_pages_, median.pages);
  if (const int64_t taken = backend_->device_bytes(); taken > 0)
    timed.memory_gb = static_cast<double>(taken - (most_pages_ - median.stats.peak_pages) * engine.page_size *
                                                      backend.kv_bytes_per_token()) /
                      1e9;
  return timed;
}

const BenchBackend& LengthsBench::probe(const Job& job) {
  const std::string key = fmt::format("{}\n{}", device_text(job.engine.device), job.engine.reproducible);
  if (!probe_ || probed_ != key) {
    probe_.reset();
    probe_ = std::make_unique<BenchBackend>(
        BenchModel{kProbeShape, "", job.engine.device, job.engine.reproducible, 1});
    probed_ = key;
  }
  return *probe_;
}

LengthsForecast::Pass LengthsBench::simulate(const Job& job, const EvalLengths& lengths,
                                             int32_t answer_tokens, const ModelConfig& config,
                                             LengthsForecast& forecast) {
  const BenchBackend& like = probe(job);
  CountingBackend counting(config,
                           like.backend().kv_bytes_per_token() * config.kv_floats_per_token() /
                               like.config().kv_floats_per_token(),
                           like.backend().preferred_tokens());
  const std::vector<Stack> stacks = pack(make_rows(lengths, job.method, answer_tokens, config.vocab),
                                         {job.method, job.engine.window}, config.context);
  EngineOptions engine = engine_options(job, counting, kv_room(job, like.kv_bytes()), stacks);
  for (const Stack& stack : stacks)
    if (pages_at_once(stack, engine.page_size) > engine.pages) {
      forecast.trouble = "a prompt does not fit the memory left for keys and values";
      return {};
    }
  const std::optional<DeviceModel> device = find_device_model(like.backend().device());
  std::optional<PredictedTime> predicted;
  if (device && lengths.attention) engine.observer = &predicted.emplace(config, *device);
  const BenchRun run = run_once(counting, engine, stacks);
  forecast.gb = std::max(
      forecast.gb,
      static_cast<double>(run.stats.peak_pages * engine.page_size * counting.kv_bytes_per_token()) / 1e9);
  if (device)
    forecast.error =
        device->measured_experts(config) ? device->error : device->widened(device->error, config);
  return {run.stats.steps, predicted ? predicted->seconds() : 0};
}

LengthsForecast LengthsBench::forecast(const Job& job, const EvalLengths& asked) {
  const EvalLengths lengths = as_asked(asked, job.method);
  LengthsForecast forecast;
  forecast.runs = lengths.runs;
  const ModelConfig config = read_model_config(job.model.path).config;
  if (const int64_t positions = positions_of(lengths, job.method, lengths.answer_tokens);
      positions > config.context) {
    forecast.trouble = too_long_text(positions, config.context);
    return forecast;
  }
  const RandomWeights weights =
      has_weights(job.model.path) ? RandomWeights() : random_weights(config, probe(job).on_gpu());
  if (!weights.trouble.empty()) {
    forecast.trouble = weights.trouble;
    return forecast;
  }
  if (!job.method.speculate.draft.empty()) return forecast;  // how a draft's steps go is not known beforehand
  forecast.whole = simulate(job, lengths, lengths.answer_tokens, config, forecast);
  if (forecast.trouble.empty() && lengths.decoding_only)
    forecast.first = simulate(job, lengths, 1, config, forecast);
  if (weights.bytes > 0) forecast.gb += static_cast<double>(weights.bytes) / 1e9;
  return forecast;
}

ordered_json LengthsBench::time(const Job& job, const EvalLengths& lengths, bool restart,
                                const LengthsForecast& expected, const OnTimed& progress) {
  const std::string& folder = job.output.path;
  if (!restart)
    if (ordered_json before = measured_before(job, lengths); before.is_object()) return before;
  ordered_json report{{"measured", describe(job, lengths)}};
  try {
    if (!backend_) probe_.reset();  // its memory is for the model
    open(job);
  } catch (const OutOfMemory& error) {
    report["not_measured"] = fmt::format("the weights do not fit: {}", error.what());
    return report;
  }
  probe_.reset();  // its memory is for the model
  // The share of a pass is that of its expected seconds, or of its steps where the device has no profile.
  const auto weight = [](const LengthsForecast::Pass& pass) {
    return pass.seconds > 0 ? pass.seconds : static_cast<double>(pass.steps);
  };
  const double all = expected.runs * (weight(expected.whole) + weight(expected.first));
  const auto tell = [&](const LengthsForecast::Pass& pass, double before) {
    return [&, before](int32_t run, int64_t steps, double predicted) {
      if (!progress || all <= 0) return;
      const double here = pass.seconds > 0 ? predicted : static_cast<double>(steps);
      progress(std::min(1.0, (before + run * weight(pass) + std::min(here, weight(pass))) / all));
    };
  };
  const Timed whole =
      time_answers(job, lengths, as_asked(lengths, job.method).answer_tokens, tell(expected.whole, 0));
  const Timed first =
      lengths.decoding_only && whole.seconds > 0
          ? time_answers(job, lengths, 1, tell(expected.first, expected.runs * weight(expected.whole)))
          : Timed();
  if (*job.stop) return nullptr;
  report["backend"] = backend_->backend().describe();
  report["weights"] = has_weights(job.model.path) ? "loaded" : "random";
  if (!whole.trouble.empty()) {
    report["not_measured"] = whole.trouble;
  } else if (first.seconds >= whole.seconds) {
    report["not_measured"] =
        fmt::format("answers of one token took as long as those of {}", lengths.answer_tokens);
  } else {
    report["seconds"] = whole.seconds - first.seconds;
    report["seconds_of_all"] = whole.seconds;
    if (whole.predicted > 0) report["predicted_seconds"] = whole.predicted - first.predicted;
    report["steps"] = whole.steps;
    if (whole.proposed > 0) report["tokens"] = {{"proposed", whole.proposed}, {"accepted", whole.accepted}};
    if (whole.memory_gb > 0) report["memory_gb"] = whole.memory_gb;
  }
  files_.make_folder(folder);
  write_whole(files_, folder, kFile, report.dump(2) + "\n");
  return report;
}

}  // namespace sheaf

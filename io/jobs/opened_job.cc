#include "io/jobs/opened_job.h"

#include <algorithm>
#include <future>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/interrupted.h"
#include "core/base/stopwatch.h"
#include "core/methods/method.h"
#include "io/base/mapped_file.h"
#include "io/base/process.h"
#include "io/corpus/corpus.h"
#include "io/corpus/example_file.h"
#include "io/files/job_file.h"
#include "io/jobs/choose_device.h"
#include "io/model/model_files.h"
#include "io/passages/passages.h"

namespace sheaf {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

/// Of a token in int8 beside another precision, as a share (docs/performance.md).
double int8_cost(Precision beside) {
  return beside == Precision::int8 ? 1 : beside == Precision::int16 ? 0.45 : 0.3;
}

int32_t pool_pages(int64_t bytes, const Backend& backend) {
  // Slot numbers are 32-bit.
  return static_cast<int32_t>(
      std::clamp<int64_t>(bytes / (backend.kv_bytes_per_token() * kPageSize), 1, INT32_MAX / kPageSize));
}

}  // namespace

ChatChoice choose_chat(const Job::ModelPart& model, std::string_view jinja, const Tokenizer& tokenizer) {
  ChatChoice choice = model.chat == "auto" ? choose_chat_template(jinja, tokenizer)
                      : model.chat_is_file()
                          ? ChatChoice{read_chat_file(model.chat), "model.chat names a file"}
                          : ChatChoice{chat_template(model.chat), "model.chat names it"};
  if (model.reasoning != Reasoning::none)
    choice.chat = with_effort(std::move(choice.chat), word_of(model.reasoning));
  return choice;
}

OpenedJob::OpenedJob(Job job) : job_(std::move(job)) {
  const Stopwatch watch(open_seconds_);
  // Waking a GPU takes a quarter of a second. Meanwhile the files are read.
  auto choice_of_device = std::async(
      std::launch::async,
      [device = job_.engine.device, dtype = job_.model.dtype] { return choose_device(device, dtype); });
  open_files();
  const DeviceChoice chosen = choice_of_device.get();
  kind_ = chosen.kind;
  devices_ = chosen.devices;
  // The price is that of one device.
  job_.cost.devices =
      std::max(job_.cost.devices, static_cast<int32_t>(std::set(devices_.begin(), devices_.end()).size()));
  if (!on_gpu() && std::cmp_less(threads(), engines()))
    refuse(
        "engine.device: {} needs a thread for each engine, but the job has {} (engine.threads); use cpu:{}",
        device_text(job_.engine.device), threads(), threads());
  if (!on_gpu() && job_.model.weights == WeightStorage::packed)
    refuse("model.weights: packed works only on a GPU; leave it out");
  if (!on_gpu() && !job_.method.speculate.draft.empty() && job_.engine.kernels == CpuKernels::reference)
    refuse(
        "method.speculate: a draft does not work with engine.kernels: reference; leave one of the two out");
  if (!on_gpu() && job_.engine.kv_dtype == KvPrecision::fp8)
    refuse("engine.kv_dtype: fp8 works only on a GPU; leave it out");
  if (!chosen.notice.empty()) notices_.insert(notices_.begin(), chosen.notice);
  if (!on_gpu() && job_.engine.kernels == CpuKernels::reference && in_whole_numbers(job_.model.on_cpu()))
    refuse("engine.kernels: reference computes in fp32, not in {}; leave one of the two out",
           word_of(job_.model.on_cpu()));
}

void OpenedJob::open_files() {
  if (!job_.input.corpus.empty())
    job_.input.passages = std::make_shared<Passages>(passage_files(job_), notices_);
  if (!job_.task.schema.empty()) {
    schema_ = read_schema(job_);
    if (job_.input.path != "-")
      if (std::string notice = category_notice(job_, schema_); !notice.empty())
        notices_.push_back(std::move(notice));
  }
  model_ = load_model(job_.model.path, job_.model.adapter);
  if (!model_.notice.empty()) notices_.push_back(model_.notice);
  if (job_.model.context > 0) use_context(model_.config, job_.model.context, "model.context");
  LoadedTokenizer loaded = load_tokenizer(job_.model.path);
  tokenizer_ = std::move(loaded.tokenizer);
  if (tokenizer_->vocab_size() > model_.config.vocab)
    refuse("{}: the tokenizer has {} tokens, but the model only {}; use the tokenizer of this model",
           job_.model.path, tokenizer_->vocab_size(), model_.config.vocab);
  ChatChoice choice = choose_chat(job_.model, loaded.chat_template, *tokenizer_);
  if (!choice.warning.empty()) notices_.push_back(std::move(choice.warning));
  chat_ = std::move(choice.chat);
  examples_ = read_examples(job_, schema_, model_.config.context, notices_);
}

const StopRules& OpenedJob::stop_rules() {
  if (!stop_rules_) stop_rules_ = std::make_unique<StopRules>(*tokenizer_, model_.config.vocab);
  return *stop_rules_;
}

bool OpenedJob::take_input() {
  if (job_.input.path != "-") return true;
  standard_input_ = copy_standard_input(job_, interrupted);
  return standard_input_ != nullptr;
}

std::unique_ptr<Corpus> OpenedJob::corpus() const {
  return open_corpus(job_, job_.task.kind == TaskKind::extract ? &schema_ : nullptr);
}

int OpenedJob::threads() const {
  return job_.engine.threads > 0 ? job_.engine.threads : usable_cores().threads();
}

BackendOptions OpenedJob::backend_options() const {
  return {devices_,
          threads(),
          on_gpu() ? job_.model.dtype : job_.model.on_cpu(),
          job_.engine.kv_dtype == KvPrecision::fp8,
          job_.model.weights,
          job_.engine.reproducible,
          job_.engine.kernels == CpuKernels::reference};
}

Backends OpenedJob::backends() const {
  return kind_->make(model_, backend_options());
}

Backends OpenedJob::draft_backends() {
  if (job_.method.speculate.draft.empty()) return {};
  open_draft();
  BackendOptions options = backend_options();
  // What it proposes is checked, so that it may be as coarse as it is quick.
  if (!on_gpu()) options.precision = Precision::int8;
  return kind_->make(draft_, options);
}

/// The draft's tokens must be the model's: an id means the same text in both.
void OpenedJob::open_draft() {
  const std::string& path = job_.method.speculate.draft;
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    draft_ = load_model(path, "");
    tokenizer = std::move(load_tokenizer(path).tokenizer);
  } catch (const Error& error) {
    throw Error(error.fault(), fmt::format("method.speculate.draft: {}", error.what()));
  }
  const auto refuse_draft = [&](const std::string& why) {
    refuse(
        "method.speculate.draft: {} has another tokenizer than {}: {}; use a smaller model of the same "
        "family",
        path, job_.model.path, why);
  };
  const int32_t own = tokenizer_->vocab_size(), theirs = tokenizer->vocab_size();
  if (own != theirs) refuse_draft(fmt::format("{} tokens instead of {}", theirs, own));
  for (TokenId id = 0; id < own; ++id)
    if (const std::string text = tokenizer_->decode({&id, 1}, false),
        other = tokenizer->decode({&id, 1}, false);
        text != other)
      refuse_draft(fmt::format("its token {} is {}, not {}", id, shown(other), shown(text)));
  if (draft_.config.vocab < own)
    refuse("method.speculate.draft: {} has {} tokens, but its tokenizer {}; use the tokenizer of that model",
           path, draft_.config.vocab, own);
}

Footprint OpenedJob::footprint() const {
  return kind_->footprint(model_.config, backend_options());
}

std::unique_ptr<Task> OpenedJob::task(const Job& job) const {
  return make_task(*tokenizer_, chat_, job, schema_, &examples_);
}

/// For the keys and values of an engine. A draft's come on top, as a share of that.
int64_t OpenedJob::pool_bytes(size_t engine) const {
  if (job_.engine.kv_memory_gb > 0)
    return static_cast<int64_t>(job_.engine.kv_memory_gb * static_cast<double>(kGiB));
  const int device = devices_[engine];
  return kind_->pool_bytes(kind_->memory(device)) / std::ranges::count(devices_, device);
}

DraftOptions OpenedJob::draft_options(const Backend& draft, size_t engine) const {
  return {std::min(draft.preferred_tokens(), kDraftStep), pool_pages(pool_bytes(engine) / kDraftShare, draft),
          kPageSize, on_gpu() ? 1 : int8_cost(job_.model.on_cpu())};
}

EngineOptions OpenedJob::engine_options(const Backend& backend, size_t engine) const {
  EngineOptions options;
  options.page_size = kPageSize;
  options.tokens_per_step =
      job_.engine.tokens_per_step > 0 ? job_.engine.tokens_per_step : backend.preferred_tokens();
  options.pages = pool_pages(pool_bytes(engine), backend);
  options.small_start = true;
  options.prompts = job_.engine.prompts;
  options.temperature = job_.method.temperature;
  options.top_k = job_.method.top_k;
  options.top_p = job_.method.top_p;
  options.seed = job_.method.seed;
  options.speculation.lookup = job_.method.speculate.lookup;
  options.speculation.sparing = !job_.method.speculate.always;
  options.interrupted = &interrupted;
  return options;
}

PlanLimits OpenedJob::limits(std::vector<Engine*> engines) const {
  return {model_.config.context, job_.method.prompt_tokens,
          [engines = std::move(engines)](const Stack& stack) {
            return std::ranges::all_of(engines, [&](const Engine* each) { return each->fits(stack); });
          },
          job_.input.too_long, model_.config.long_context};
}

}  // namespace sheaf

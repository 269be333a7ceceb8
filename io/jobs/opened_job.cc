#include "io/jobs/opened_job.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/stopwatch.h"
#include "core/methods/method.h"
#include "io/base/mapped_file.h"
#include "io/corpus/corpus.h"
#include "io/corpus/example_file.h"
#include "io/files/job_file.h"
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

OpenedJob::OpenedJob(Job job, std::shared_ptr<OpenModel> model)
    : job_(std::move(job)), open_(std::move(model)) {
  const Stopwatch watch(open_seconds_);
  if (open_) open_->check_fits(job_);
  read_files();
  // The price is that of one device.
  job_.cost.devices =
      std::max(job_.cost.devices, static_cast<int32_t>(std::set(devices().begin(), devices().end()).size()));
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
  if (!on_gpu() && job_.engine.kernels == CpuKernels::reference && in_whole_numbers(job_.model.on_cpu()))
    refuse("engine.kernels: reference computes in fp32, not in {}; leave one of the two out",
           word_of(job_.model.on_cpu()));
}

void OpenedJob::read_files() {
  if (!job_.input.corpus.empty())
    job_.input.passages = std::make_shared<Passages>(passage_files(job_), notices_);
  if (!job_.task.schema.empty()) {
    schema_ = read_schema(job_);
    if (job_.input.path != "-" && !job_.input.table)
      if (std::string notice = category_notice(job_, schema_); !notice.empty())
        notices_.push_back(std::move(notice));
  }
  if (!open_) {
    open_ = std::make_shared<OpenModel>(job_);
    notices_.insert(notices_.end(), open_->notices().begin(), open_->notices().end());
  }
  ChatChoice choice = choose_chat(job_.model, open_->chat_template(), tokenizer());
  if (!choice.warning.empty()) notices_.push_back(std::move(choice.warning));
  chat_ = std::move(choice.chat);
  examples_ = read_examples(job_, schema_, model().config.context, notices_);
}

bool OpenedJob::take_input() {
  if (job_.input.path != "-" || job_.input.table) return true;
  standard_input_ = copy_standard_input(job_, *job_.stop);
  return standard_input_ != nullptr;
}

std::unique_ptr<Corpus> OpenedJob::corpus() const {
  return open_corpus(job_, job_.task.kind == TaskKind::extract ? &schema_ : nullptr);
}

Backends OpenedJob::draft_backends() {
  if (job_.method.speculate.draft.empty()) return {};
  open_draft();
  BackendOptions options = open_->backend_options();
  // What it proposes is checked, so that it may be as coarse as it is quick.
  if (!on_gpu()) options.precision = Precision::int8;
  return open_->kind().make(draft_, options);
}

/// The draft's tokens must be the model's: an id means the same text in both.
void OpenedJob::open_draft() {
  const std::string& path = job_.method.speculate.draft;
  std::unique_ptr<Tokenizer> theirs;
  try {
    draft_ = load_model(path, "");
    theirs = std::move(load_tokenizer(path).tokenizer);
  } catch (const Error& error) {
    throw Error(error.fault(), fmt::format("method.speculate.draft: {}", error.what()));
  }
  const auto refuse_draft = [&](const std::string& why) {
    refuse(
        "method.speculate.draft: {} has another tokenizer than {}: {}; use a smaller model of the same "
        "family",
        path, job_.model.path, why);
  };
  const int32_t own = tokenizer().vocab_size(), of_draft = theirs->vocab_size();
  if (own != of_draft) refuse_draft(fmt::format("{} tokens instead of {}", of_draft, own));
  for (TokenId id = 0; id < own; ++id)
    if (const std::string text = tokenizer().decode({&id, 1}, false), other = theirs->decode({&id, 1}, false);
        text != other)
      refuse_draft(fmt::format("its token {} is {}, not {}", id, shown(other), shown(text)));
  if (draft_.config.vocab < own)
    refuse("method.speculate.draft: {} has {} tokens, but its tokenizer {}; use the tokenizer of that model",
           path, draft_.config.vocab, own);
}

Footprint OpenedJob::footprint() const {
  return open_->kind().footprint(model().config, open_->backend_options());
}

std::unique_ptr<Task> OpenedJob::task(const Job& job) const {
  return make_task(tokenizer(), chat_, job, schema_, &examples_);
}

/// For the keys and values of an engine. A draft's come on top, as a share of that.
int64_t OpenedJob::pool_bytes(size_t engine) const {
  if (job_.engine.kv_memory_gb > 0)
    return static_cast<int64_t>(job_.engine.kv_memory_gb * static_cast<double>(kGiB));
  const int device = devices()[engine];
  return open_->kind().pool_bytes(open_->kind().memory(device)) / std::ranges::count(devices(), device);
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
  options.interrupted = job_.stop;
  return options;
}

PlanLimits OpenedJob::limits(std::vector<Engine*> engines) const {
  return {model().config.context, job_.method.prompt_tokens,
          [engines = std::move(engines)](const Stack& stack) {
            return std::ranges::all_of(engines, [&](const Engine* each) { return each->fits(stack); });
          },
          job_.input.too_long, model().config.long_context};
}

}  // namespace sheaf

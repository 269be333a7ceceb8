#include "io/jobs/open_model.h"

#include <future>

#include "core/base/error.h"
#include "io/base/file_layer.h"
#include "io/base/process.h"
#include "io/files/job_keys.h"

namespace sheaf {
namespace {

/// What two jobs on one open model must have alike, beside its files.
constexpr std::array kOfTheModel = {"model.dtype",         "model.cpu_dtype", "model.weights",
                                    "model.context",       "engine.threads",  "engine.kernels",
                                    "engine.reproducible", "engine.kv_dtype"};

/// Null where a file cannot be read; opening it tells why.
nlohmann::ordered_json look_at(const Job::ModelPart& model) {
  try {
    return model_fingerprint(model);
  } catch (const std::exception&) {
    return nullptr;
  }
}

Job sections_of(const Job& job) {
  Job kept;
  kept.model = job.model;
  kept.engine = job.engine;
  return kept;
}

}  // namespace

OpenModel::OpenModel(const Job& job)
    : job_(sections_of(job)), fingerprint_(look_at(job.model)), weights_(job.model) {
  // Waking a GPU takes a quarter of a second. Meanwhile the files are read.
  auto choice_of_device = std::async(
      std::launch::async,
      [device = job.engine.device, dtype = job.model.dtype] { return choose_device(device, dtype); });
  model_ = load_model(job.model.path, job.model.adapter);
  if (!model_.notice.empty()) notices_.push_back(model_.notice);
  if (job.model.context > 0) use_context(model_.config, job.model.context, "model.context");
  LoadedTokenizer loaded = load_tokenizer(job.model.path);
  tokenizer_ = std::move(loaded.tokenizer);
  chat_template_ = std::move(loaded.chat_template);
  if (tokenizer_->vocab_size() > model_.config.vocab)
    refuse("{}: the tokenizer has {} tokens, but the model only {}; use the tokenizer of this model",
           job.model.path, tokenizer_->vocab_size(), model_.config.vocab);
  device_ = choice_of_device.get();
  if (!device_.notice.empty()) notices_.insert(notices_.begin(), device_.notice);
}

void OpenModel::check_fits(const Job& job) const {
  if (real_path(job.model.path) != real_path(job_.model.path))
    refuse(
        "model.path: the job wants {}, but the open model is {}; leave model.path out, or open another model",
        job.model.path, job_.model.path);
  if (job.model.adapter.empty() != job_.model.adapter.empty() ||
      real_path(job.model.adapter) != real_path(job_.model.adapter))
    refuse(
        "model.adapter: the job wants {}, but the model was opened with {}; leave it out, or open the model "
        "again with this adapter",
        job.model.adapter.empty() ? "none" : job.model.adapter,
        job_.model.adapter.empty() ? "none" : job_.model.adapter);
  for (const char* const path : kOfTheModel) {
    const JobKey& key = *find_job_key(path);
    if (key.value(job) != key.value(job_))
      refuse(
          "{}: the job wants {}, but the model was opened with {}; leave the key out, or open the model "
          "again "
          "with this value",
          path, key.value(job).dump(), key.value(job_).dump());
  }
  if (job.engine.device == job_.engine.device) return;
  if (const DeviceChoice wanted = choose_device(job.engine.device, job.model.dtype);
      wanted.kind != device_.kind || wanted.devices != device_.devices)
    refuse(
        "engine.device: the job wants {}, but the model was opened with {}; leave the key out, or open the "
        "model again with this value",
        device_text(job.engine.device), device_text(job_.engine.device));
}

int OpenModel::threads() const {
  return job_.engine.threads > 0 ? job_.engine.threads : usable_cores().threads();
}

const StopRules& OpenModel::stop_rules() {
  if (!stop_rules_) stop_rules_ = std::make_unique<StopRules>(*tokenizer_, model_.config.vocab);
  return *stop_rules_;
}

BackendOptions OpenModel::backend_options() const {
  return {device_.devices,
          threads(),
          kind().gpu ? job_.model.dtype : job_.model.on_cpu(),
          job_.engine.kv_dtype == KvPrecision::fp8,
          job_.model.weights,
          job_.engine.reproducible,
          job_.engine.kernels == CpuKernels::reference};
}

const std::vector<std::shared_ptr<Backend>>& OpenModel::backends() {
  if (backends_.empty())
    for (std::unique_ptr<Backend>& backend : make_backends()) backends_.push_back(std::move(backend));
  return backends_;
}

}  // namespace sheaf

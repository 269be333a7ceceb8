#include "io/jobs/engines.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/estimate/device_profile.h"
#include "cpu/large_buffer.h"
#include "io/files/hardware_file.h"
#include "io/files/job_fingerprint.h"

namespace sheaf {

namespace {

constexpr double kGB = 1e9;
constexpr int32_t kTimedRows = 1024;

/// Of a token of a prompt in a step of its own kind.
double seconds_per_token(const DeviceModel& device, const ModelConfig& config, int32_t step_rows) {
  const int32_t rows = std::clamp(step_rows, 1, kTimedRows);
  const StepBatch batch = make_probe_batch({{{.rows = rows}}, 1}, kPageSize);
  return device.step(config, count_step(batch, config)).total() / rows;
}

/// For people: "smollm2.gguf", "smollm2.gguf with shoes".
std::string model_name(const Job::ModelPart& model) {
  const auto last = [](std::string path) {
    while (path.ends_with('/')) path.pop_back();
    return std::filesystem::path(path).filename().string();
  };
  return last(model.path) + (model.adapter.empty() ? "" : " with " + last(model.adapter));
}

}  // namespace

Engines::Engines(OpenedJob& opened, const Use& use, const Replace& replace) {
  if (replace)
    for (std::unique_ptr<Backend>& backend : opened.open_model().make_backends())
      all_.push_back({replace(all_.size(), std::move(backend))});
  else
    for (const std::shared_ptr<Backend>& backend : opened.open_model().backends()) {
      backend->free_kv();  // of the job before, or this one would divide what that left
      all_.push_back({backend, backend->stage_seconds(), backend->routing().passes > 0});
    }
  if (use.store != Use::Store::none && !opened.job().engine.kv_store.path.empty())
    open_store(opened, use.store == Use::Store::filled);
  if (use.speculate) make_drafts(opened);
  for (size_t i = 0; i < all_.size(); ++i) {
    One& one = all_[i];
    const bool fp8 = opened.job().model.dtype == Precision::fp8;
    if (use.predict)
      one.device = find_device_model(one.backend->device(), fp8 ? Precision::fp8 : Precision::bf16,
                                     attended_precision(one.backend->config(), opened.job().engine.kv_dtype,
                                                        opened.job().engine.reproducible));
    if (one.device && !one.device->measured_experts(one.backend->config())) one.device.reset();
    EngineOptions options = opened.engine_options(*one.backend, i);
    // Devices of another kind compute other bits.
    if (store_ && one.backend->kv_kind() == backend(0).kv_kind()) options.store = &*store_;
    if (one.device) {
      options.observer = &one.predicted.emplace(one.backend->config(), *one.device);
      options.seconds_per_token =
          seconds_per_token(*one.device, one.backend->config(), options.tokens_per_step);
    }
    if (!use.speculate) options.speculation = {};
    if (one.draft) options.speculation.draft = &*one.draft;
    one.engine.emplace(*one.backend, opened.stop_rules(), options);
  }
}

/// Before the engines take what memory is left.
void Engines::make_drafts(OpenedJob& opened) {
  std::vector<std::unique_ptr<Backend>> drafts = opened.draft_backends();
  for (size_t i = 0; i < drafts.size(); ++i) {
    One& one = all_[i];
    one.draft_backend = std::move(drafts[i]);
    one.draft.emplace(*one.draft_backend, opened.draft_options(*one.draft_backend, i));
  }
}

void Engines::open_store(OpenedJob& opened, bool filled) {
  const Job& job = opened.job();
  Backend& first = *all_.front().backend;
  if (first.kv_kind().empty())
    refuse("engine.kv_store does not work with {}; leave one of the two out",
           job.engine.kernels == CpuKernels::reference ? "engine.kernels: reference" : first.describe());
  KvStoreOptions options;
  options.bytes = static_cast<int64_t>(job.engine.kv_store.gb * kGB);
  options.memory_bytes = job.engine.kv_store.memory_gb > 0
                             ? static_cast<int64_t>(job.engine.kv_store.memory_gb * kGB)
                             : machine_memory() / 8;
  options.threads = opened.on_gpu() ? std::clamp(opened.threads(), 1, 16) : 1;
  options.form = job.engine.kv_store.rounds() ? KvForm::rounded : KvForm::computed;
  options.patient = filled;
  store_.emplace(KvFolder::open(job.engine.kv_store.path, "engine.kv_store: "),
                 model_fingerprint(job.model).dump(), model_name(job.model),
                 first.kv_kind() + (options.form == KvForm::rounded ? ", kept in 8 bits" : "") +
                     // It may have chosen other rotary tables.
                     (job.model.context > 0 ? fmt::format(", a context of {}", job.model.context) : ""),
                 options, [&first](int64_t bytes) { return first.host_memory(bytes); });
}

std::vector<Engine*> Engines::pointers() {
  std::vector<Engine*> pointers;
  for (One& one : all_) pointers.push_back(&*one.engine);
  return pointers;
}

TimedStages Engines::stage_seconds(size_t engine) const {
  TimedStages seconds = all_[engine].backend->stage_seconds();
  for (const auto& [stage, before] : all_[engine].stages_before)
    for (auto& [own, value] : seconds)
      if (own == stage) value -= before;
  return seconds;
}

Routing Engines::routing(size_t engine) const {
  return all_[engine].routed_before ? Routing() : all_[engine].backend->routing();
}

std::optional<double> Engines::predicted_seconds(size_t engine) const {
  const One& one = all_[engine];
  return one.predicted ? std::optional(one.predicted->seconds()) : std::nullopt;
}

double Engines::predicted_error() const {
  double error = 0;
  for (const One& one : all_)
    if (one.device) error = std::max(error, one.device->widened(one.device->error, one.backend->config()));
  return error;
}

std::string Engines::describe() const {
  return backend(0).describe() + (size() > 1 ? fmt::format(" and {} more", size() - 1) : "");
}

std::string Engines::name(size_t engine) const {
  const std::string own = backend(engine).describe();
  size_t before = 0, alike = 0;
  for (size_t i = 0; i < size(); ++i) {
    if (backend(i).describe() != own) continue;
    ++alike;
    before += i < engine;
  }
  return alike > 1 ? fmt::format("{} #{}", own, before + 1) : own;
}

}  // namespace sheaf

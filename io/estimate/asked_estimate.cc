#include <algorithm>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/methods/method.h"
#include "io/estimate/inputs.h"
#include "io/files/hardware_file.h"
#include "io/files/job_file.h"

namespace sheaf {
namespace {

EstimateAsked completed(EstimateAsked asked) {
  const RecordStatistics& lengths = asked.statistics;
  if (!asked.workload.empty() &&
      (lengths.answer || lengths.document > 0 || asked.sample || asked.tokens_per_byte))
    refuse(
        "--workload uses all records of the file, with their lengths; leave out --answer-tokens, "
        "--document-tokens, --sample and --tokens-per-byte");
  for (const std::string& text : asked.sweeps) asked.sweep.push_back(parse_sweep(text));
  if (asked.job.empty() && !asked.overrides.empty())
    refuse("--set {}: overrides a key of a job file; name one, or use an option of `sheaf estimate`",
           asked.overrides[0]);
  if (!asked.job.empty()) {
    std::vector<std::string> settled;
    for (const auto& [key, given] : {std::pair{"method", !asked.method.empty()},
                                     {"model", !asked.model.empty()},
                                     {"hardware", !asked.hardware.empty()},
                                     {"documents", asked.documents.has_value()},
                                     {"prompt_tokens", asked.prompt_tokens.has_value()},
                                     {"tokens_per_step", asked.tokens_per_step.has_value()},
                                     {"devices", asked.devices.has_value()}})
      if (given) settled.emplace_back(key);
    asked.take_missing(read_job_estimate(asked.root ? asked.root : read_job_yaml(asked.job), asked.overrides),
                       settled);
  }
  if (!asked.reuse.runs.empty()) {
    const bool other = !asked.model.empty() || !asked.method.empty() ||
                       std::ranges::any_of(asked.sweep, [](const SweepAxis& axis) {
                         return axis.key == "model" || axis.key == "method";
                       });
    if (asked.job.empty() || !asked.workload.empty() || lengths.document > 0 || asked.records || other)
      refuse(
          "--reuse compares the answers of a run with the corpus of a job; name the job, and leave out "
          "--workload, --document-tokens, --records, and other models and methods");
  } else if (asked.reuse.if_exists) {
    refuse("--reuse-if-exists needs --reuse; name the runs whose answers are to be taken");
  }
  if (lengths.document == 0 &&
      (lengths.documents || lengths.questions || lengths.question || lengths.instruction))
    refuse("estimate: made-up records need --document-tokens, the length of their documents; add it");
  const auto models = std::ranges::find(asked.sweep, "model", &SweepAxis::key);
  if (models != asked.sweep.end() && asked.model.empty()) asked.model = models->values[0];
  return asked;
}

EstimateCase base_case(const EstimateAsked& asked, const EstimateInputs& inputs) {
  const Job& job = inputs.job();
  EstimateCase base{inputs.model_name(), inputs.config(), nullptr,           job.method,
                    job.engine,          job.cost,        job.model.weights, inputs.model().stored_bits};
  base.method.documents = asked.documents.value_or(base.method.documents);
  base.method.prompt_tokens = asked.prompt_tokens.value_or(base.method.prompt_tokens);
  base.engine.tokens_per_step = asked.tokens_per_step.value_or(base.engine.tokens_per_step);
  base.cost.devices = static_cast<int32_t>(asked.devices.value_or(base.cost.devices));
  return base;
}

}  // namespace

AskedEstimate::AskedEstimate(const EstimateAsked& given)
    : asked(completed(given)),
      within(asked.within.empty() ? 0 : parse_duration(asked.within)),
      inputs(asked),
      list(read_hardware(asked.hardware_file.empty() ? find_hardware_file() : asked.hardware_file,
                         inputs.job().model,
                         attended_precision(inputs.config(), inputs.job().engine.kv_dtype,
                                            inputs.job().engine.reproducible))),
      base(base_case(asked, inputs)),
      axes(asked.sweep) {
  if (!base.cost.hardware.empty()) list.find(base.cost.hardware, "cost.hardware");
  check_methods();
  if (const SweepAxis* named = find_axis("hardware")) {
    check_dtype(*named);
    return;
  }
  SweepAxis hardware{"hardware", {}};
  if (!asked.hardware.empty()) hardware = parse_sweep("hardware=" + asked.hardware);
  hardware.from = asked.hardware_from;
  check_dtype(hardware);
  const Job& job = inputs.job();
  const bool gpus = job.engine.device.kind != Device::Kind::cpu &&
                    (job.model.dtype == Precision::automatic || only_on_gpu(job.model.dtype));
  if (hardware.values.empty())
    for (const Hardware& each : list.devices)
      if (each.gpu == gpus && each.computes_as_wanted()) hardware.values.push_back(each.name);
  base.hardware = &list.find(hardware.values[0], hardware.from);
  // Before the others, so that their values make a curve for each device.
  if (hardware.values.size() > 1) axes.insert(axes.begin(), hardware);
}

const SweepAxis* AskedEstimate::find_axis(std::string_view key) const {
  const auto found = std::ranges::find(axes, key, &SweepAxis::key);
  return found == axes.end() ? nullptr : &*found;
}

/// A method that a run would refuse would win comparisons for nothing.
void AskedEstimate::check_methods() const {
  const Job& job = inputs.job();
  std::vector<std::string> methods = {job.method.name};
  if (const SweepAxis* axis = find_axis("method")) methods = axis->values;
  const auto count = [&](auto&& is) {
    return std::ranges::count_if(methods, [&](const std::string& name) { return is(find_method(name)); });
  };
  const bool chains = count([](const Method& method) { return method.wording.one_by_one; }) > 0;
  if (const auto slots = count([](const Method& method) { return method.wording.skeleton; });
      !asked.workload.empty() && slots > 0 && slots < std::ssize(methods))
    refuse(
        "--workload: hpd reads a line as a document with slots, the other methods read it as a context with "
        "questions; compare them in two commands");
  if (job.task.kind == TaskKind::none) return;  // no job: lengths alone
  const std::vector<std::string> fitting = method_names(job.task.kind);
  for (const std::string& method : methods)
    if (std::ranges::find(fitting, method) == fitting.end())
      refuse("the method {} does not work with task.kind {}; use one of {}", method, word_of(job.task.kind),
             fmt::join(fitting, ", "));
  if (chains && !job.input.has_documents())
    refuse(
        "the methods pced, ape and map-reduce read the documents of a record one by one, but the records of "
        "{} have only one; set input.documents",
        job.file);
  if (chains && job.input.too_long != TooLong::refuse)
    refuse(
        "the methods pced, ape and map-reduce cannot {} documents (input.too_long in {}); add --set "
        "input.too_long=refuse",
        word_of(job.input.too_long), job.file);
}

/// Refuses a dtype that a run on the hardware, as it was asked for by name, would refuse.
void AskedEstimate::check_dtype(const SweepAxis& hardware) const {
  const Job& job = inputs.job();
  if (job.model.dtype == Precision::automatic) return;
  for (const std::string& name : hardware.values)
    if (!list.find(name, hardware.from).computes_as_wanted())
      refuse(
          "{}: sheaf does not compute in FP8 on {}; leave out model.dtype: fp8, or use an Ada or Hopper GPU",
          hardware.from, name);
  const bool open = hardware.values.empty();
  const bool gpu = open ? job.engine.device.kind == Device::Kind::cuda
                        : std::ranges::any_of(hardware.values, [&](const std::string& name) {
                            return list.find(name, hardware.from).gpu;
                          });
  if (only_on_gpu(job.model.dtype)) {
    if (open ? job.engine.device.kind == Device::Kind::cpu : !gpu)
      refuse("model.dtype: {} works only on a GPU; leave it out for the CPU", word_of(job.model.dtype));
  } else if (gpu) {
    refuse("model.dtype: {} works only on the CPU; leave it out, or set engine.device: cpu{}",
           word_of(job.model.dtype), open ? "" : " and name no GPU");
  }
}

}  // namespace sheaf

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>
#include <memory>

#include "app/commands.h"
#include "app/estimate_show.h"
#include "app/option_checks.h"
#include "core/base/error.h"
#include "core/methods/method.h"
#include "io/base/named_output.h"
#include "io/estimate/inputs.h"
#include "io/files/hardware_file.h"
#include "io/files/job_file.h"
#include "io/jobs/workbench.h"

namespace sheaf {
namespace {

struct EstimateOptions : EstimateAsked {
  std::string hardware_file, html;
  std::vector<std::string> sweeps;
  std::optional<int32_t> documents, prompt_tokens, tokens_per_step;
  int32_t shards = 0;  ///< 0: not asked for
  bool json = false;
};

const SweepAxis* find_axis(const std::vector<SweepAxis>& axes, std::string_view key) {
  const auto found = std::ranges::find(axes, key, &SweepAxis::key);
  return found == axes.end() ? nullptr : &*found;
}

/// The options, completed by the job's own section.
EstimateOptions completed(EstimateOptions options) {
  RecordStatistics& lengths = options.statistics;
  if (!options.workload.empty() &&
      (lengths.answer || lengths.document > 0 || options.sample || options.tokens_per_byte))
    refuse(
        "--workload uses all records of the file, with their lengths; leave out --answer-tokens, "
        "--document-tokens, --sample and --tokens-per-byte");
  for (const std::string& text : options.sweeps) options.sweep.push_back(parse_sweep(text));
  if (options.job.empty() && !options.overrides.empty())
    refuse("--set {}: overrides a key of a job file; name one, or use an option of `sheaf estimate`",
           options.overrides[0]);
  if (!options.job.empty()) {
    std::vector<std::string> settled;
    if (!options.method.empty()) settled.emplace_back("method");
    if (!options.model.empty()) settled.emplace_back("model");
    if (!options.hardware.empty()) settled.emplace_back("hardware");
    if (options.documents) settled.emplace_back("documents");
    if (options.prompt_tokens) settled.emplace_back("prompt_tokens");
    if (options.tokens_per_step) settled.emplace_back("tokens_per_step");
    if (options.devices) settled.emplace_back("devices");
    options.take_missing(read_job_estimate(options.job, options.overrides), settled);
  }
  if (lengths.document == 0 &&
      (lengths.documents || lengths.questions || lengths.question || lengths.instruction))
    refuse("estimate: made-up records need --document-tokens, the length of their documents; add it");
  if (const SweepAxis* models = find_axis(options.sweep, "model"); models && options.model.empty())
    options.model = models->values[0];
  return options;
}

EstimateCase base_case(const EstimateOptions& options, const EstimateInputs& inputs) {
  const Job& job = inputs.job();
  EstimateCase base{inputs.model_name(), inputs.config(), nullptr,           job.method,
                    job.engine,          job.cost,        job.model.weights, inputs.model().stored_bits};
  base.method.documents = options.documents.value_or(base.method.documents);
  base.method.prompt_tokens = options.prompt_tokens.value_or(base.method.prompt_tokens);
  base.engine.tokens_per_step = options.tokens_per_step.value_or(base.engine.tokens_per_step);
  base.cost.devices = static_cast<int32_t>(options.devices.value_or(base.cost.devices));
  return base;
}

/// A method that a run would refuse would win comparisons for nothing.
void check_methods(const Job& job, const EstimateOptions& options, const std::vector<SweepAxis>& axes) {
  std::vector<std::string> methods = {job.method.name};
  if (const SweepAxis* axis = find_axis(axes, "method")) methods = axis->values;
  const auto count = [&](auto&& is) {
    return std::ranges::count_if(methods, [&](const std::string& name) { return is(find_method(name)); });
  };
  const bool chains = count([](const Method& method) { return method.wording.one_by_one; }) > 0;
  if (const auto slots = count([](const Method& method) { return method.wording.skeleton; });
      !options.workload.empty() && slots > 0 && slots < std::ssize(methods))
    refuse(
        "--workload: hpd reads a line as a document with slots, the other methods read it as a context with "
        "questions; compare them in two commands");
  if (job.task.kind == TaskKind::none) return;  // no job: lengths alone
  const std::vector<std::string> fitting = method_names(job.task.kind);
  for (const std::string& method : methods)
    if (std::ranges::find(fitting, method) == fitting.end())
      refuse("the method {} does not work with task.kind {}; use one of {}", method, word_of(job.task.kind),
             fmt::join(fitting, ", "));
  if (chains && job.input.documents.empty())
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

void run(const EstimateOptions& given) {
  if (!given.html.empty()) NamedOutput(given.html, {given.job});  // before the work, not after it
  const EstimateOptions options = completed(given);
  const double within = options.within.empty() ? 0 : parse_duration(options.within);
  const EstimateInputs inputs(options);
  const HardwareList list =
      read_hardware(options.hardware_file.empty() ? find_hardware_file() : options.hardware_file,
                    inputs.job().model, attended_keys(inputs.job().engine, inputs.config()));
  EstimateCase base = base_case(options, inputs);
  if (!base.cost.hardware.empty()) list.find(base.cost.hardware, "cost.hardware");
  std::vector<SweepAxis> axes = options.sweep;
  check_methods(inputs.job(), options, axes);
  if (const SweepAxis* named = find_axis(axes, "hardware")) {
    check_dtype(inputs.job(), *named, list);
  } else {
    SweepAxis hardware{"hardware", {}};
    if (!options.hardware.empty()) hardware = parse_sweep("hardware=" + options.hardware);
    hardware.from = options.hardware_from;
    check_dtype(inputs.job(), hardware, list);
    const bool gpus =
        inputs.job().engine.device.kind != Device::Kind::cpu &&
        (inputs.job().model.dtype == Precision::automatic || only_on_gpu(inputs.job().model.dtype));
    if (hardware.values.empty())
      for (const Hardware& each : list.devices)
        if (each.gpu == gpus && each.computes_as_wanted()) hardware.values.push_back(each.name);
    base.hardware = &list.find(hardware.values[0], hardware.from);
    // Before the others, so that their values make a curve for each device.
    if (hardware.values.size() > 1) axes.insert(axes.begin(), hardware);
  }
  if (axes.empty())
    show_estimate({options.json, options.html, within, options.shards}, base, inputs, list);
  else if (options.shards > 0)
    refuse("--shards {} is for one device and no sweep; add --hardware with one name, such as {}",
           options.shards, list.devices.front().name);
  else
    show_sweep({options.json, options.html, within, 0}, base, inputs, list, axes);
}

}  // namespace

void add_estimate_command(CLI::App& app) {
  auto* command = app.add_subcommand("estimate",
                                     "Estimate how long a job takes and what it costs, for one device or "
                                     "several; needs no weights and no GPU");
  auto options = std::make_shared<EstimateOptions>();
  RecordStatistics& lengths = options->statistics;
  command->add_option("JOB", options->job,
                      "The job file; its estimate section can set the options below. Not needed with "
                      "--workload or --document-tokens");
  command
      ->add_option("--set", options->overrides,
                   "Override a key of the job: --set method.documents=4 (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command->add_option("--dtype", options->dtype, "Compute in this (model.dtype): bf16, fp8 and so on")
      ->check(one_of(all_words<Precision>()));
  command->add_flag("--packed", options->packed,
                    "Keep weights on the GPU as the model's file has them; a shape's are assumed to be Q4_K "
                    "(model.weights: packed)");
  command
      ->add_option("--model", options->model,
                   "Use this model instead of the job's: a shape such as qwen3-8b, a config.json, a "
                   "folder or a GGUF file")
      ->type_name("MODEL");
  command
      ->add_option(
          "--hardware", options->hardware,
          "Devices from the list, separated by commas; one is shown in detail (default: compare its GPUs)")
      ->type_name("NAME");
  command->add_option("--hardware-file", options->hardware_file,
                      "The list of devices (default: configs/hardware.yaml here, else the installed one)");
  command
      ->add_option("--devices", options->devices,
                   "Devices that share the corpus (default: the job's cost.devices)")
      ->check(whole_from(1, 100000));
  command
      ->add_option("--shards", options->shards,
                   "Also say how long the job takes as an array of so many shards on the devices")
      ->check(whole_from(1, 100000));
  command->add_option("--method", options->method, "Use this method instead of the job's")
      ->check(one_of(method_names()));
  command->add_option("--documents", options->documents, "Documents per prompt (0: as many as fit)")
      ->check(whole_from(0));
  command->add_option("--prompt-tokens", options->prompt_tokens, "The most tokens in a prompt")
      ->check(whole_from(1));
  command->add_option("--tokens-per-step", options->tokens_per_step, "Tokens per step")->check(whole_from(1));
  command
      ->add_option("--sample", options->sample,
                   "Records of the corpus to sample (default: 512, or fewer if they are long)")
      ->check(whole_from<int64_t>(1));
  command->add_option("--records,--rows", options->records, "Records in the whole corpus (default: counted)")
      ->check(whole_from<int64_t>(1));
  command
      ->add_option("--answer-tokens", lengths.answer,
                   "Assumed length of a free answer (default: 8; chat: as long as allowed)")
      ->check(number_from(kLengths.least, kLengths.most));
  command
      ->add_option("--tokens-per-byte", options->tokens_per_byte,
                   "Tokens per byte of text to assume if the model has no tokenizer (default: 0.25)")
      ->check(number_from(0.01, 4));
  command->add_option("--workload", options->workload, "Estimate a workload file of `sheaf bench`");
  command->add_option("--document-tokens", lengths.document, "Made-up records: mean tokens per document")
      ->check(number_from(kLengths.least, kLengths.most));
  command
      ->add_option("--documents-per-record,--documents-per-row", lengths.documents,
                   "Made-up records: documents per record (default: 1); pced, ape and map-reduce read "
                   "them one by one")
      ->check(number_from(kDocuments.least, kDocuments.most));
  command
      ->add_option("--questions", lengths.questions,
                   "Made-up records: questions per document (default: 1; extract: the schema's)")
      ->check(number_from(kLengths.least, kLengths.most));
  command
      ->add_option("--question-tokens", lengths.question,
                   "Made-up records: tokens per question (default: 12)")
      ->check(number_from(kLengths.least, kLengths.most));
  command
      ->add_option("--instruction-tokens", lengths.instruction,
                   "Made-up records: tokens in the instruction (default: the job's)")
      ->check(number_from(0, kLengths.most));
  command
      ->add_option(
          "--sweep", options->sweeps,
          "Compare settings: KEY=VALUE,VALUE; KEY is method, model, hardware, documents, prompt_tokens, "
          "tokens_per_step, prompts or devices (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUES");
  command
      ->add_option("--within", options->within,
                   "Mark the cheapest choice that takes at most this long: 2h, 90m, 30s")
      ->type_name("TIME");
  command->add_option("--html", options->html, "Also write the comparison to this HTML file");
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->callback([options] { run(*options); });
}

}  // namespace sheaf

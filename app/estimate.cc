#include <CLI/CLI.hpp>
#include <cmath>
#include <fmt/ranges.h>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>

#include "app/commands.h"
#include "app/estimate_inputs.h"
#include "app/estimate_sweep.h"
#include "app/hardware_file.h"
#include "app/job_file.h"
#include "core/error.h"
#include "core/estimate/best_packing.h"
#include "core/svg_plot.h"

namespace sheaf {
namespace {

struct EstimateOptions {
  EstimateAsked asked;
  std::string hardware;  ///< empty: every GPU of the list
  std::string hardware_file;
  int32_t documents = -1, prompt_tokens = 0, rows_per_step = 0, devices = 1;
  std::vector<std::string> sweeps;
  std::string within, html;
  bool json = false;
};

Job::Method method_of(const EstimateOptions& options, const Job& job) {
  Job::Method method = job.method;
  if (options.documents >= 0) method.documents = options.documents;
  if (options.prompt_tokens > 0) method.prompt_tokens = options.prompt_tokens;
  return method;
}

std::string gigabytes(double bytes) {
  return fmt::format("{:.1f} GB", bytes / 1e9);
}

std::string error_text(const Hardware& hardware) {
  const int percent = static_cast<int>(std::lround(hardware.error * 100));
  if (hardware.borrowed)
    return fmt::format("±{} %: not measured on this device; efficiencies of {} at its own peaks", percent,
                       hardware.measured_on);
  return fmt::format("±{} %: steps measured on {}, {}", percent, hardware.measured_on, hardware.measured);
}

/// What another device would have that this one lacks.
std::string fitting_devices(const EstimateCase& asked, const HardwareList& list) {
  std::vector<std::string> names;
  for (const Hardware& each : list.devices)
    if (each.gpu && plan_memory(asked.config, each, asked.use).fits()) names.push_back(each.name);
  return names.empty() ? "none of the list holds it" : fmt::format("{} would do", fmt::join(names, ", "));
}

std::string estimate_text(const EstimateCase& asked, const Estimate& each, const HardwareList& list) {
  const Hardware& hardware = *asked.hardware;
  const MemoryPlan& memory = each.memory;
  std::string text = fmt::format("model     {}, {} of weights\n", asked.model, gigabytes(memory.weights));
  text += fmt::format("hardware  {}{}\n", asked.devices > 1 ? fmt::format("{} × ", asked.devices) : "",
                      hardware.title);
  text += fmt::format("method    {}, {} a prompt of at most {} tokens, {} rows a step\n", asked.method.name,
                      asked.method.documents > 0 ? fmt::format("{} documents", asked.method.documents)
                                                 : "as many documents as fit",
                      asked.method.prompt_tokens, memory.rows_per_step);
  text +=
      fmt::format("memory    fits: {} weights, {} a step, {} for keys and values ({} at the peak) of {}\n",
                  gigabytes(memory.weights), gigabytes(memory.activations), gigabytes(memory.pool),
                  gigabytes(each.kv_peak), gigabytes(hardware.memory));
  text += fmt::format("tokens    {} computed in {} steps", number_text(each.tokens),
                      number_text(std::round(each.steps)));
  if (each.tokens_alone > 0)
    text += fmt::format("; one prompt per question: {} ({:.1f}x)", number_text(each.tokens_alone),
                        each.tokens_alone / each.tokens);
  text += fmt::format("\ntime      {} in all: open {}, prefill {}, decode {}, picks {}, host {}\n",
                      time_text(each.total_seconds()), time_text(each.open_seconds),
                      time_text(each.prefill_seconds), time_text(each.decode_seconds),
                      time_text(each.pick_seconds), time_text(each.host_seconds));
  text += fmt::format("speed     {} rows/s, {} answers/s ({} rows, {} answers)\n",
                      number_text(each.rows_per_second()), number_text(each.answers_per_second()),
                      number_text(static_cast<double>(each.rows)), number_text(each.answers));
  if (const Instance* instance = hardware.cheapest())
    text += fmt::format(
        "cost      ${:.4f} per 1,000 rows, ${:.2f} for all on {} (${:.2f} a device and hour, list price of "
        "{})\n",
        each.usd_per_thousand(), each.usd(), instance->name, instance->usd_per_device_hour(),
        list.prices_as_of);
  return text + fmt::format("error     {}\n", error_text(hardware));
}

nlohmann::ordered_json case_json(const EstimateCase& asked, const Hardware& hardware) {
  return {{"model", asked.model},         {"hardware", hardware.name},
          {"method", asked.method.name},  {"documents", asked.method.documents},
          {"devices", asked.devices},     {"measured_on", hardware.measured_on},
          {"borrowed", hardware.borrowed}};
}

void show_one(const EstimateOptions& options, const EstimateCase& asked, const EstimateInputs& inputs,
              const HardwareList& list) {
  if (!plan_memory(asked.config, *asked.hardware, asked.use).fits())
    refuse("{} does not fit {}: {} of weights, {} of memory; {}", asked.model, asked.hardware->name,
           gigabytes(plan_memory(asked.config, *asked.hardware, asked.use).weights),
           gigabytes(asked.hardware->memory), fitting_devices(asked, list));
  const Estimate each = estimate(asked, inputs.rows());
  const BestPacking best = find_best_packing(asked, inputs.rows());
  if (options.json) {
    nlohmann::ordered_json json = case_json(asked, *asked.hardware);
    json.update(estimate_json(each));
    json["best"] = {{"documents", best.documents},
                    {"rows_per_step", best.rows_per_step},
                    {"work_seconds", best.work_seconds}};
    json["notes"] = inputs.notes();
    std::cout << json.dump(2) << '\n';
    return;
  }
  std::cout << estimate_text(asked, each, list);
  const bool as_is =
      best.documents == asked.method.documents && best.rows_per_step == each.memory.rows_per_step;
  std::cout << (as_is ? std::string("best      as it is\n")
                      : fmt::format("best      documents {}, {} rows a step: {} of work, {:.0f} % less\n",
                                    best.documents == 0 ? "as many as fit" : std::to_string(best.documents),
                                    best.rows_per_step, time_text(best.work_seconds),
                                    100 * (1 - best.work_seconds / each.work_seconds)));
  for (const std::string& note : inputs.notes()) std::cout << "note      " << note << '\n';
}

void show_sweep(const EstimateOptions& options, const EstimateCase& base, const EstimateInputs& inputs,
                const HardwareList& list, const std::vector<SweepAxis>& axes) {
  const double within = options.within.empty() ? 0 : parse_duration(options.within);
  const std::vector<SweepRow> rows = sweep(base, inputs.rows(), list, axes, within);
  std::vector<std::string> notes = inputs.notes();
  notes.push_back(
      fmt::format("{}, {} rows; list prices of {}", base.model, inputs.rows().whole, list.prices_as_of));
  std::map<std::string, std::vector<std::string>> errors;
  for (const SweepRow& row : rows) {
    std::vector<std::string>& names = errors[error_text(*row.hardware)];
    if (std::ranges::find(names, row.hardware->name) == names.end()) names.push_back(row.hardware->name);
  }
  for (const auto& [text, names] : errors)
    notes.push_back(fmt::format("{}: {}", fmt::join(names, ", "), text));
  if (options.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const SweepRow& row : rows) {
      nlohmann::ordered_json json;
      for (size_t i = 0; i < axes.size(); ++i) json[axes[i].key] = row.values[i];
      if (row.estimate) json.update(estimate_json(*row.estimate));
      if (!row.problem.empty()) json["problem"] = row.problem;
      if (!row.mark.empty()) json["mark"] = row.mark;
      all.push_back(std::move(json));
    }
    std::cout << nlohmann::ordered_json{{"cases", all}, {"notes", notes}}.dump(2) << '\n';
  } else {
    std::cout << sweep_text(axes, rows);
    for (const std::string& note : notes) std::cout << "note  " << note << '\n';
  }
  if (options.html.empty()) return;
  std::ofstream file(options.html);
  file << sweep_html(axes, rows, notes) << std::flush;
  if (!file) refuse("--html: {} cannot be written", options.html);
}

/// A method that the job's task cannot be run with would win comparisons for nothing.
void check_methods(const Job& job, const std::string& asked, const std::vector<SweepAxis>& axes) {
  if (job.task.kind.empty()) return;  // no job: lengths alone
  const std::vector<std::string>& fitting = methods_of(job.task.kind);
  const auto check = [&](const std::string& method) {
    if (std::ranges::find(fitting, method) == fitting.end())
      refuse("the method {} cannot be used with task.kind {}; choose among {}", method, job.task.kind,
             fmt::join(fitting, ", "));
  };
  if (!asked.empty()) check(asked);
  for (const SweepAxis& axis : axes)
    if (axis.key == "method")
      for (const std::string& method : axis.values) check(method);
}

void run(const EstimateOptions& options) {
  const EstimateInputs inputs(options.asked);
  const HardwareList list =
      read_hardware(options.hardware_file.empty() ? find_hardware_file() : options.hardware_file);
  EstimateCase base{inputs.model_name(), inputs.config(), nullptr, method_of(options, inputs.job()), {},
                    options.devices};
  base.use.rows_per_step =
      options.rows_per_step > 0 ? options.rows_per_step : inputs.job().engine.rows_per_step;
  base.use.kv_memory = inputs.job().engine.kv_memory_gb * static_cast<double>(int64_t{1} << 30);
  std::vector<SweepAxis> axes;
  for (const std::string& text : options.sweeps) axes.push_back(parse_sweep(text));
  check_methods(inputs.job(), options.asked.method, axes);
  const bool swept_hardware =
      std::ranges::any_of(axes, [](const SweepAxis& axis) { return axis.key == "hardware"; });
  if (!options.hardware.empty()) {
    base.hardware = &list.find(options.hardware);
  } else if (!swept_hardware) {
    axes.push_back({"hardware", {}});
    for (const Hardware& each : list.devices)
      if (each.gpu) axes.back().values.push_back(each.name);
  }
  if (axes.empty())
    show_one(options, base, inputs, list);
  else
    show_sweep(options, base, inputs, list, axes);
}

}  // namespace

void add_estimate_command(CLI::App& app) {
  auto* command = app.add_subcommand(
      "estimate", "What a job would take and cost on which machine; needs no weights and no GPU");
  auto options = std::make_shared<EstimateOptions>();
  EstimateAsked& asked = options->asked;
  command->add_option("JOB", asked.job, "The job file; may be left out with --workload or --document-tokens");
  command->add_option("--set", asked.overrides, "Override a key of the job: --set method.documents=4")
      ->allow_extra_args(false);
  command->add_option(
      "--model", asked.model,
      "Instead of the job's: a shape such as qwen3-8b, a config.json, a folder or a GGUF file");
  command->add_option("--hardware", options->hardware, "A device of the list (default: compare its GPUs)");
  command->add_option("--hardware-file", options->hardware_file, "The list (default: configs/hardware.yaml)");
  command->add_option("--devices", options->devices, "Devices that share the corpus")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--method", asked.method, "Instead of the job's")
      ->check(CLI::IsMember({"standard", "separate", "prefix", "ippd", "parallel-prompting", "hpd"}));
  command->add_option("--documents", options->documents, "Documents a prompt (0: as many as fit)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--prompt-tokens", options->prompt_tokens, "Most tokens of a prompt")
      ->check(CLI::PositiveNumber);
  command->add_option("--rows-per-step", options->rows_per_step, "Rows of a step")
      ->check(CLI::PositiveNumber);
  command->add_option("--sample", asked.sample, "Rows of the corpus that are looked at")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--rows", asked.rows, "Rows of the whole corpus (default: counted)")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--answer-tokens", asked.answer_tokens, "Tokens an answer is assumed to take (default: 8)")
      ->check(CLI::PositiveNumber);
  command->add_option("--tokens-per-byte", asked.tokens_per_byte, "Where there is no tokenizer")
      ->check(CLI::Range(0.01, 4.0))
      ->capture_default_str();
  command->add_option("--workload", asked.workload, "Rows of a workload file for sheaf bench");
  RowStatistics& statistics = asked.statistics;
  command->add_option("--document-tokens", statistics.document, "Made-up rows: mean tokens of a document")
      ->check(CLI::PositiveNumber);
  command->add_option("--questions", statistics.questions, "… questions or attributes a document")
      ->check(CLI::PositiveNumber);
  command->add_option("--question-tokens", statistics.question, "… tokens of a question or key")
      ->check(CLI::PositiveNumber);
  command->add_option("--instruction-tokens", statistics.instruction, "… tokens of the instruction")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--sweep", options->sweeps,
                   "Compare: KEY=VALUE,VALUE of method, model, hardware, documents, prompt_tokens, "
                   "rows_per_step, devices (may be repeated)")
      ->allow_extra_args(false);
  command->add_option("--within", options->within,
                      "Mark the cheapest that takes at most so long: 2h, 90m, 30s");
  command->add_option("--html", options->html, "Write the comparison as a page too");
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->callback([options] { run(*options); });
}

}  // namespace sheaf

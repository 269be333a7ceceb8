#include <CLI/CLI.hpp>
#include <fmt/ranges.h>
#include <memory>

#include "app/commands.h"
#include "app/option_checks.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/methods/method.h"
#include "core/model/shapes.h"
#include "io/base/named_output.h"
#include "io/files/hardware_file.h"
#include "io/jobs/bench_calibrate.h"
#include "io/jobs/bench_workload.h"
#include "io/jobs/workbench.h"

namespace sheaf {
namespace {

struct BenchCommand : BenchOptions {
  std::string device = "cuda";
  bool random_weights = false;      ///< said aloud: without a model path it is so anyhow
  std::string calibration;          ///< a file to write; then there is no workload
  std::vector<std::string> shapes;  ///< to calibrate with
  std::string dtype = "auto";
};

/// A workload's records have one document each.
std::vector<std::string> timed_methods() {
  std::vector<std::string> names;
  for (const Method& method : all_methods())
    if (!method.wording.one_by_one) names.emplace_back(method.name);
  return names;
}

void write_calibration(const BenchCommand& options) {
  for (const std::string& shape : options.shapes) shape_by_name(shape);  // before two minutes are spent
  const NamedOutput file(options.calibration);
  const auto left_out = [](const std::string& text) { print_line(text, Stream::err); };
  file.write(calibration_text(calibrate(options.model, options.shapes, left_out, rewrite_line)));
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto* command =
      app.add_subcommand("bench", "Time a workload of token ids, with random weights or with a model's");
  auto options = std::make_shared<BenchCommand>();
  auto* workload = command->add_option("WORKLOAD", options->workload,
                                       "The workload: JSON lines of token ids (.gz and .zst too)");
  auto* model = command
                    ->add_option("--model", options->model.path,
                                 "Use the weights of this model: a GGUF file or a folder")
                    ->type_name("MODEL");
  command
      ->add_option("--shape", options->model.shape,
                   "The model's shape, listed below, or a config.json (not with --model)")
      ->type_name("SHAPE")
      ->capture_default_str()
      ->excludes(model);
  command
      ->add_flag("--random-weights", options->random_weights,
                 "Use random weights of the shape (the default; not with --model)")
      ->excludes(model);
  command
      ->add_option("--method", options->packing.method.name,
                   "How prompts are packed (hpd uses the workload's slots)")
      ->check(one_of(timed_methods()))
      ->capture_default_str();
  command
      ->add_option("--documents", options->packing.method.documents,
                   "Contexts or documents per prompt (0: as many as fit)")
      ->check(whole_from(0));
  command->add_option("--prompt-tokens", options->packing.method.prompt_tokens, "The most tokens in a prompt")
      ->check(whole_from(1))
      ->capture_default_str();
  command
      ->add_option("--window", options->packing.window, "How many lines of the workload are planned together")
      ->check(whole_from(1))
      ->capture_default_str();
  command
      ->add_option("--tokens-per-step,--rows", options->tokens,
                   "Tokens per step (0: as many as suit the device)")
      ->check(whole_from(0));
  command->add_option("--device", options->device, "Where to compute (cpu: for small shapes)")
      ->type_name("{auto,cpu,cuda,cuda:N}")
      ->capture_default_str();
  command
      ->add_option(
          "--dtype", options->dtype,
          "What to compute in: f32, int16 or int8 on the CPU, bf16 or fp8 on a GPU (auto: f32, bf16)")
      ->check(one_of({"auto", "f32", "int16", "int8", "bf16", "fp8"}))
      ->capture_default_str();
  command->add_flag_callback(
      "--packed", [options] { options->model.weights = WeightStorage::packed; },
      "Keep the weights on the GPU as the model's file has them (random ones: Q4_K), and "
      "expand them for every product");
  command->add_flag("--kv-fp8", options->model.fp8_keys,
                    "Keep keys and values in FP8 (engine.kv_dtype: fp8)");
  command->add_flag("--reproducible", options->model.reproducible,
                    "Make answers independent, to the bit, of the batch and of how prompts are packed");
  command
      ->add_option("--repeat", options->repeat,
                   "How many times to run; if more than one, the first run warms up and the median of the "
                   "others counts")
      ->check(whole_from(1))
      ->capture_default_str();
  auto* calibrate_to = command
                           ->add_option("--calibrate", options->calibration,
                                        "Time made-up steps instead of a workload, and write a calibration "
                                        "for `sheaf estimate` to this file")
                           ->excludes(workload);
  command
      ->add_option("--shapes", options->shapes,
                   "Shapes to calibrate with, separated by commas; only with --calibrate (default: some that "
                   "suit the device)")
      ->delimiter(',')
      ->type_name("SHAPE")
      ->needs(calibrate_to);
  command->footer(fmt::format("Shapes:\n  {}", fmt::join(shape_names(), ", ")));
  command->callback([options] {
    options->model.device = parse_device(options->device, "--device");
    if (options->model.device.several())
      refuse("--device {}: bench times one device; name one, such as {}", options->device,
             options->model.device.kind == Device::Kind::cpu ? "cpu" : "cuda:0");
    if (const auto dtype = read_word<Precision>(options->dtype)) options->model.dtype = *dtype;
    if (!options->calibration.empty()) {
      if (!options->model.path.empty() || options->model.weights == WeightStorage::packed ||
          options->model.reproducible)
        refuse("--calibrate times random weights: leave out --model, --packed and --reproducible");
      return write_calibration(*options);
    }
    if (options->workload.empty()) refuse("bench: give a workload to time, or --calibrate FILE");
    print_json(bench_workload(*options), -1);
  });
}

}  // namespace sheaf

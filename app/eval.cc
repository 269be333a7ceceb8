#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <memory>

#include "app/commands.h"
#include "app/option_checks.h"
#include "app/progress.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/job/device.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/eval/evaluation.h"

namespace sheaf {
namespace {

/// They become values of jobs, which are YAML.
void check_text(const EvalChoice& choice, const std::string& device) {
  const auto check = [](const char* option, const std::string& value) {
    if (valid_prefix(value) < value.size()) refuse("{} {}: this is not UTF-8 text", option, value);
  };
  for (const std::string& model : choice.models) check("--model", model);
  check("--data", choice.data);
  check("--output", choice.output);
  if (!device.empty()) parse_device(device, "--device");
}

/// What `sheaf eval` is asked to do.
struct EvalCommand {
  std::string path;
  EvalChoice choice;
  GridOptions grid;
  EvalSettings settings;
  size_t count = 10;  ///< of differences shown
  bool check = false, json = false, quiet = false;
};

void show_differences(const EvalCommand& command, const std::vector<DifferencePair>& pairs) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  const auto columns = static_cast<size_t>(terminal_columns());
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!command.json) print_text((i > 0 ? "\n" : "") + differences_text(pairs[i], columns));
    json.push_back(differences_json(pairs[i]));
  }
  if (command.json) print_json(json);
}

void show_table(const EvalCommand& command, const EvalTable& table, const std::string& folder) {
  if (command.json) return print_json(eval_json(table));
  if (command.quiet) return;
  print_text(eval_text(table));
  print_line(fmt::format("table   {}/table.md, .csv, .json, .html", folder));
  if (table.differences) print_line(fmt::format("differ  {}/differences.html", folder));
  if (!flush_output()) forgive_output();  // the result is in the folder
}

int evaluate(EvalCommand& command) {
  check_text(command.choice, command.grid.device);
  const std::vector<std::string>& two = command.choice.differences;
  if (!two.empty() && two[0] == two[1])
    refuse("--differences {} {}: give two different methods", two[0], two[1]);
  const Eval eval = read_eval(command.path, command.choice);
  command.grid.files = !command.check;
  std::vector<EvalCell> cells = read_grid(eval, command.grid);
  if (command.check) {
    if (!command.quiet)
      print_line(fmt::format("{}: {}, {}, {}: {}; all keys are valid", command.path,
                             counted(std::ssize(eval.models), "model"),
                             counted(std::ssize(eval.datasets), "dataset"),
                             counted(std::ssize(eval.methods), "method"), counted(std::ssize(cells), "run")));
    return 0;
  }
  ShownRun shown(command.quiet || command.json);
  Evaluation evaluation(real_files(), command.settings, eval, std::move(cells), shown);
  if (!two.empty()) {
    show_differences(command, evaluation.differences(two[0], two[1], command.count));
    return 0;
  }
  check_runs(evaluation.cells(), command.settings.restart);
  stop_in_order();
  outlive_readers();
  const EvalEnd end = evaluation.run();
  if (end.exit_code == 130)
    print_note(end.interrupted);
  else
    show_table(command, evaluation.table(), eval.output);
  return end.exit_code;
}

}  // namespace

void add_eval_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<EvalCommand>();
  CLI::App* command = app.add_subcommand(
      "eval",
      "Run models, methods and datasets, and show them in one table: throughput, quality, exact match, "
      "speed-up, cost. Rerun the same command to resume after an interruption");
  command->add_option("EVAL", options->path, "The evaluation file (YAML; docs/eval.md explains every key)")
      ->required();
  command
      ->add_option("--model", options->choice.models,
                   "Use only this model; NAME=PATH also replaces its path; all=PATH replaces every path (may "
                   "be repeated)")
      ->allow_extra_args(false)
      ->type_name("NAME[=PATH]");
  command->add_option("--dataset", options->choice.datasets, "Use only this dataset (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("NAME");
  command
      ->add_option("--method", options->choice.methods,
                   "Use only the method with this label (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("LABEL");
  command->add_option("--data", options->choice.data, "The folder with the datasets (overrides the file's)")
      ->type_name("FOLDER");
  command->add_option("--output", options->choice.output, "The output folder (overrides the file's)")
      ->type_name("FOLDER");
  command
      ->add_option("--set", options->grid.overrides,
                   "Override a key of every job: --set engine.window=64 (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command
      ->add_option("--limit", options->grid.limit,
                   "Read at most N records of each dataset (0: as the file says)")
      ->check(whole_from<int64_t>(0, int64_t{1} << 53));
  command
      ->add_option("--device", options->grid.device,
                   "Where to compute (engine.device); several engines: cuda:all, cuda:0,2 or cpu:2")
      ->type_name("{auto,cpu,cuda,cuda:N}");
  command->add_flag(
      "--log-samples", options->settings.log_samples,
      "Write samples.jsonl beside the rows of each run: question, references, prediction, scores");
  command
      ->add_option("--differences", options->choice.differences,
                   "Run nothing; show side by side where two methods differ in finished runs")
      ->expected(2)
      ->type_name("LABEL");
  command->add_option("--count", options->count, "How many differences to show")
      ->check(whole_from<size_t>(0))
      ->capture_default_str();
  command->add_flag("--check", options->check,
                    "Run nothing; check the file and the keys of its jobs (needs no models or data)");
  command->add_flag("--restart", options->settings.restart,
                    "Delete the runs in the output folder and run everything again");
  command->add_flag("--json", options->json, "Print the table as JSON on standard output");
  command->add_flag("--quiet,-q", options->quiet, "Print no progress and no table");
  command->callback([options, &exit_code] { exit_code = evaluate(*options); });
}

}  // namespace sheaf

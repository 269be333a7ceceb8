#include "app/job_options.h"
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

/// Refuses what cannot become a value of a job, which is YAML.
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
  forgive_output();  // the result is in the folder
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

void add_eval_command(Program& program) {
  auto options = std::make_shared<EvalCommand>();
  EvalChoice& choice = options->choice;
  add_command(
      program, "eval",
      "Run models, methods and datasets, and show them in one table: throughput, quality, exact match, "
      "speed-up, cost. Rerun the same command to resume after an interruption",
      {{"EVAL", options->path, "The evaluation file (YAML; docs/eval.md explains every key)", kRequired},
       {"--model", choice.models,
        "Use only this model; NAME=PATH also replaces its path; all=PATH replaces every path (may "
        "be repeated)",
        kRepeatable, value_name("NAME[=PATH]")},
       {"--dataset", choice.datasets, "Use only this dataset (may be repeated)", kRepeatable,
        value_name("NAME")},
       {"--method", choice.methods, "Use only the method with this label (may be repeated)", kRepeatable,
        value_name("LABEL")},
       {"--data", choice.data, "The folder with the datasets (overrides the file's)", value_name("FOLDER")},
       {"--output", choice.output, "The output folder (overrides the file's)", value_name("FOLDER")},
       set_option(options->grid.overrides,
                  "Override a key of every job: --set engine.window=64 (may be repeated)"),
       {"--limit", options->grid.limit, "Read at most N records of each dataset (0: as the file says)",
        whole_from<int64_t>(0, int64_t{1} << 53)},
       device_option(options->grid.device),
       {"--log-samples", options->settings.log_samples,
        "Write samples.jsonl beside the rows of each run: question, references, prediction, scores"},
       {"--max-cell-hours", options->settings.max_cell_hours,
        "Leave out cells with lengths that are expected to take longer than this (0: none)",
        number_from(0, 1e6)},
       {"--differences", choice.differences,
        "Run nothing; show side by side where two methods differ in finished runs",
        [](CLI::Option& option) { option.expected(2); }, value_name("LABEL")},
       {"--count", options->count, "How many differences to show", whole_from<size_t>(0), kWithDefault},
       {"--check", options->check,
        "Run nothing; check the file and the keys of its jobs (needs no models or data)"},
       {"--restart", options->settings.restart,
        "Delete the runs in the output folder and run everything again"},
       {"--json", options->json, "Print the table as JSON on standard output"},
       {"--quiet,-q", options->quiet, "Print no progress and no table"}},
      [options] { return evaluate(*options); });
}

}  // namespace sheaf

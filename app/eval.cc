#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>
#include <memory>
#include <set>

#include "app/commands.h"
#include "app/eval_samples.h"
#include "app/run_job.h"
#include "app/terminal.h"
#include "app/workbench.h"
#include "core/error.h"
#include "io/file_layer.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

struct EvalCommand {
  std::string path;
  EvalChoice choice;
  GridOptions grid;
  std::vector<std::string> differences;  ///< two labels, or none
  size_t count = 10;
  bool log_samples = false, restart = false, check = false, json = false, quiet = false;
};

constexpr size_t kShownDifferences = 50;  // of a pair, in differences.html

class Evaluation {
 public:
  Evaluation(const EvalCommand& command, const Eval& eval, std::vector<EvalCell> cells)
      : command_(command), eval_(eval), cells_(std::move(cells)), gold_(eval, cells_) {}

  /// The exit code: 130 where it was interrupted.
  int run() {
    int exit_code = 0;
    for (size_t c = 0; c < cells_.size(); ++c) {
      if (!quiet()) std::cerr << fmt::format("[{}/{}] {}\n", c + 1, cells_.size(), name_of(cells_[c]));
      RunSettings settings;
      settings.restart = command_.restart;
      settings.quiet = quiet();
      RunEnd end = run_job(cells_[c].job, settings);
      if (end.exit_code == 130) return 130;
      exit_code = std::max(exit_code, end.exit_code);
      if (!end.report.is_object())
        refuse("{}/report.json cannot be read; --restart runs everything again", cells_[c].job.output.path);
      reports_.push_back(std::move(end.report));
    }
    make_table();
    write("table.md", eval_markdown(table_));
    write("table.csv", eval_csv(table_));
    write("table.json", eval_json(table_).dump(2) + "\n");
    write("table.html", eval_html(table_));
    write("differences.html", differences_html(eval_.name, pairs_));
    if (command_.json)
      std::cout << eval_json(table_).dump(2) << '\n';
    else if (!command_.quiet)
      std::cout << eval_text(table_)
                << fmt::format("table   {0}/table.md, .csv, .json, .html\ndiffer  {0}/differences.html\n",
                               eval_.output);
    return exit_code;
  }

  /// Where two methods differ, from runs that are finished.
  void show_differences() {
    ordered_json json = ordered_json::array();
    for (size_t begin = 0; begin < cells_.size(); begin = group_end(begin)) {
      const EvalCell* sides[] = {nullptr, nullptr};
      for (size_t c = begin; c < group_end(begin); ++c)
        for (size_t s = 0; s < 2; ++s)
          if (eval_.methods[cells_[c].method].label == command_.differences[s]) sides[s] = &cells_[c];
      std::optional<ScoredRun> runs[2];
      for (size_t s = 0; s < 2; ++s) {
        if (!file_size(sides[s]->job.output.path + "/_SUCCESS"))
          refuse("{} is not finished; run it first: sheaf eval {}", sides[s]->job.output.path, command_.path);
        runs[s] = score_run(eval_.datasets[sides[s]->dataset], *sides[s], gold_);
        if (!runs[s]) refuse("{} has no rows to compare, only rejects", sides[s]->job.output.path);
      }
      const DifferencePair pair =
          find_differences(eval_, *sides[0], *runs[0], *sides[1], *runs[1], asked(*sides[0]), command_.count);
      const auto columns = static_cast<size_t>(terminal_columns());
      if (!command_.json) std::cout << (begin > 0 ? "\n" : "") << differences_text(pair, columns);
      json.push_back(differences_json(pair));
    }
    if (command_.json) std::cout << json.dump(2) << '\n';
  }

 private:
  bool quiet() const { return command_.quiet || command_.json; }

  std::string name_of(const EvalCell& cell) const {
    return fmt::format("{}, {}, {}", eval_.models[cell.model].name, eval_.datasets[cell.dataset].name,
                       eval_.methods[cell.method].label);
  }

  /// The cells of one model and dataset stand side by side.
  size_t group_end(size_t begin) const {
    size_t end = begin;
    while (end < cells_.size() && cells_[end].model == cells_[begin].model &&
           cells_[end].dataset == cells_[begin].dataset)
      ++end;
    return end;
  }

  const AskedItems& asked(const EvalCell& cell) {
    const auto found = asked_.find(cell.dataset);
    return found != asked_.end() ? found->second : asked_[cell.dataset] = read_asked(cell.job);
  }

  void make_table() {
    table_.name = eval_.name;
    table_.baseline = eval_.baseline;
    table_.paper = eval_.paper;
    for (size_t begin = 0; begin < cells_.size(); begin = group_end(begin))
      add_group(begin, group_end(begin));
    set_rates(table_);
    add_notes();
  }

  void add_group(size_t begin, size_t end) {
    std::vector<std::optional<ScoredRun>> runs;
    size_t base = end;
    for (size_t c = begin; c < end; ++c) {
      runs.push_back(score_run(eval_.datasets[cells_[c].dataset], cells_[c], gold_));
      if (eval_.methods[cells_[c].method].label == eval_.baseline && runs.back()) base = c;
    }
    for (size_t c = begin; c < end; ++c) {
      const std::optional<ScoredRun>& run = runs[c - begin];
      const ScoredRun* baseline = base == end || base == c ? nullptr : &*runs[base - begin];
      table_.rows.push_back(eval_row(eval_, cells_[c], reports_[c], run, baseline));
      if (run && command_.log_samples) write_samples(cells_[c], *run, asked(cells_[c]));
      if (run && baseline != nullptr)
        pairs_.push_back(find_differences(eval_, cells_[base], *baseline, cells_[c], *run, asked(cells_[c]),
                                          kShownDifferences));
    }
  }

  void add_notes() {
    auto& notes = table_.notes;
    notes.push_back(fmt::format(
        "n: questions or items. 95 %: interval of the quality; p: of its difference from {} (paired); EM %: "
        "answers equal to those of {}.",
        eval_.baseline, eval_.baseline));
    std::set<std::string> backends;
    for (const ordered_json& report : reports_) backends.insert(report.at("backend").get<std::string>());
    notes.push_back(fmt::format("Measured on {}.", fmt::join(backends, "; ")));
    for (const Eval::Model& model : eval_.models)
      if (model.replaced) notes.push_back(fmt::format("{} is {} here.", model.name, model.path));
    std::map<int64_t, std::set<std::string>> limits;
    for (const EvalCell& cell : cells_)
      if (cell.job.input.limit > 0) limits[cell.job.input.limit].insert(eval_.datasets[cell.dataset].name);
    for (const auto& [limit, names] : limits)
      notes.push_back(fmt::format("At most the first {} rows of {}.", limit, fmt::join(names, ", ")));
    for (const EvalRow& row : table_.rows)
      if (row.rejects > 0 || row.missing > 0)
        notes.push_back(fmt::format("{}, {}, {}: {} rows rejected; {} without a prediction, scored as wrong.",
                                    row.model, row.dataset, row.method, row.rejects, row.missing));
    if (!eval_.paper.empty()) notes.push_back(fmt::format("paper: {}.", eval_.paper));
  }

  void write(const std::string& name, const std::string& text) const {
    write_whole(real_files(), eval_.output, name, text);
  }

  static ordered_json differences_json(const DifferencePair& pair) {
    ordered_json json{{"model", pair.model},           {"dataset", pair.dataset},
                      {"first", pair.first},           {"second", pair.second},
                      {"compared", pair.compared},     {"differing", pair.differing},
                      {"shown", ordered_json::array()}};
    const auto side = [](const Difference::Side& of) {
      ordered_json scores = ordered_json::object();
      for (const auto& [name, value] : of.scores) scores[name] = value;
      return ordered_json{{"answer", of.answer}, {"scores", std::move(scores)}};
    };
    for (const Difference& each : pair.shown)
      json["shown"].push_back(
          {{"id", each.id},
           {"context", each.context},
           {"question", each.question},
           {"references", each.references ? ordered_json(*each.references) : ordered_json()},
           {"first", side(each.first)},
           {"second", side(each.second)}});
    return json;
  }

  const EvalCommand& command_;
  const Eval& eval_;
  std::vector<EvalCell> cells_;
  GoldAnswers gold_;
  std::map<size_t, AskedItems> asked_;
  std::vector<ordered_json> reports_;  ///< one a cell
  EvalTable table_;
  std::vector<DifferencePair> pairs_;
};

std::string counted(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

int evaluate(EvalCommand& command) {
  if (!command.differences.empty()) command.choice.methods = command.differences;
  const Eval eval = read_eval(command.path, command.choice);
  command.grid.files = !command.check;
  std::vector<EvalCell> cells = read_grid(eval, command.grid);
  if (command.check) {
    if (!command.quiet)
      std::cout << fmt::format("{}: {}, {}, {}: {}; every key is right\n", command.path,
                               counted(eval.models.size(), "model"), counted(eval.datasets.size(), "dataset"),
                               counted(eval.methods.size(), "method"), counted(cells.size(), "run"));
    return 0;
  }
  Evaluation evaluation(command, eval, std::move(cells));
  if (command.differences.empty()) {
    install_interrupt();
    return evaluation.run();
  }
  if (command.differences[0] == command.differences[1])
    refuse("--differences {} {}: name two methods", command.differences[0], command.differences[1]);
  evaluation.show_differences();
  return 0;
}

}  // namespace

void add_eval_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<EvalCommand>();
  CLI::App* command = app.add_subcommand("eval",
                                         "Models, methods and datasets in one table: throughput, quality, "
                                         "exact match, speed-up, cost. The same command "
                                         "goes on after whatever stopped it");
  command->add_option("EVAL", options->path, "The evaluation (YAML; docs/eval.md explains every key)")
      ->required();
  command
      ->add_option("--model", options->choice.models,
                   "Only this model, with =PATH from there; all=PATH: every model (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("NAME[=PATH]");
  command->add_option("--dataset", options->choice.datasets, "Only this dataset (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("NAME");
  command->add_option("--method", options->choice.methods, "Only the method of this label (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("LABEL");
  command->add_option("--data", options->choice.data, "The folder of the datasets, in place of the file's");
  command->add_option("--output", options->choice.output, "The output folder, in place of the file's");
  command
      ->add_option("--set", options->grid.overrides,
                   "Override a key of every job: --set engine.window=64 (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command
      ->add_option("--limit", options->grid.limit,
                   "Read at most N rows of each dataset (0: as the file says)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 53).description("N"));
  command->add_option("--device", options->grid.device, "Where to compute (engine.device)")
      ->type_name("{auto,cpu,cuda,cuda:N}");
  command->add_flag("--log-samples", options->log_samples,
                    "samples.jsonl beside the rows of each run: question, references, prediction, scores");
  command
      ->add_option("--differences", options->differences,
                   "Run nothing; show where two methods of finished runs differ, side by side")
      ->expected(2)
      ->type_name("LABEL");
  command->add_option("--count", options->count, "How many differences to show")->capture_default_str();
  command->add_flag("--check", options->check,
                    "Run nothing; check the file and the keys of its jobs, without models or data");
  command->add_flag("--restart", options->restart, "Throw away the runs that the output folder holds");
  command->add_flag("--json", options->json, "Print the table as JSON on standard output");
  command->add_flag("--quiet,-q", options->quiet, "No progress and no table on the terminal");
  command->footer(
      "Examples:\n"
      "  sheaf eval configs/eval/squad-methods.yaml --limit 4\n"
      "  sheaf eval configs/eval/squad-methods.yaml --differences standard ippd\n"
      "  sheaf eval configs/papers/ippd-table-5.yaml --dataset race --model "
      "qwen3-8b=build/models/smollm2.gguf "
      "--limit 2");
  command->callback([options, &exit_code] { exit_code = evaluate(*options); });
}

}  // namespace sheaf

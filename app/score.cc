#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <optional>

#include "app/commands.h"
#include "app/option_checks.h"
#include "app/terminal.h"
#include "io/base/named_output.h"
#include "io/files/score_run.h"

namespace sheaf {
namespace {

struct ScoreCommand : ScoreSettings {
  std::string items;
  bool json = false, quiet = false;
};

void score(const ScoreCommand& command) {
  std::optional<NamedOutput> items;
  if (!command.items.empty())
    items.emplace(command.items, std::vector{command.gold, command.job, command.predictions, command.against,
                                             command.judgements});
  const ScoredRun run = score_run(command, [&](const std::string& text) {
    if (!command.quiet) print_line(text, Stream::err);
  });
  if (items) items->write(run.item_lines());
  command.json ? print_json(score_json(run.report)) : print_text(score_text(run.report));
}

std::string help_text() {
  std::string text = "Metrics:\n";
  for (const Metric& metric : all_metrics()) text += fmt::format("  {:<13} {}\n", metric.name, metric.about);
  return text + "\ndocs/metrics.md says how each metric counts.";
}

std::string metric_names() {
  std::vector<std::string_view> names;
  for (const Metric& metric : all_metrics()) names.push_back(metric.name);
  return fmt::format("{{{}}}", fmt::join(names, ","));
}

}  // namespace

void add_score_command(CLI::App& app) {
  auto options = std::make_shared<ScoreCommand>();
  CLI::App* command =
      app.add_subcommand("score", "Score predictions against gold answers, as the official scripts do");
  command->add_option("--metric", options->metric, "The metric")->required()->type_name(metric_names());
  command->add_option(
      "--gold", options->gold,
      "A dataset as downloaded (SQuAD, QuAC, DROP, RACE, ExtractGPT, ...), a corpus that `sheaf "
      "convert` wrote, or JSON lines {\"id\", \"answers\": [...]} or {\"id\", \"gold\": {attribute: value}}");
  command->add_option("--job", options->job,
                      "In place of --gold: a job whose corpus has the right answers in columns of its own");
  command
      ->add_option(
          "--gold-column", options->gold_columns,
          "With --job: a column with them (may be repeated). extract: ATTRIBUTE=COLUMN, or a column of "
          "objects {attribute: value} (default: the columns named like attributes); ask: a column of "
          "answers")
      ->type_name("COLUMN")
      ->allow_extra_args(false);
  command->add_option("--set", options->overrides, "With --job: override a key of the job, key.path=value")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option(
      "--pred", options->predictions,
      "A run's folder, its rows-*.jsonl or .parquet, or a .json file {id: answer}; null means no "
      "answer");
  command->add_option("--against", options->against,
                      "Another run to compare with: shows the difference, its interval and a paired test");
  command->add_option(
      "--judgements", options->judgements,
      "llm-f1: JSON lines {\"id\", \"judgements\": {attribute: word}} or {\"id\", \"reply\"}");
  command->add_option("--gold-format", options->gold_format, "The dataset of --gold, if it is not recognized")
      ->type_name("NAME")
      ->capture_default_str();
  command
      ->add_option("--no-answer", options->join.no_answer,
                   "A text that counts as no answer, such as unanswerable (may be repeated)")
      ->type_name("ANSWER")
      ->allow_extra_args(false);
  command->add_flag(
      "--skip-missing", options->join.skip_missing,
      "Leave out items without a prediction (such as after --limit) instead of scoring them as wrong");
  command->add_flag(
      "--unmentioned-absent", options->join.unmentioned_absent,
      "attributes: count attributes that the gold does not name, as absent ones; a value for such "
      "an attribute is then invented (default: they are left out, as ExtractGPT does)");
  command->add_option("--items", options->items, "Write the scores of each item to this file as JSON lines");
  command
      ->add_option("--resamples", options->options.resamples, "Resamples for intervals and tests (0: none)")
      ->check(whole_from(0, 1'000'000))
      ->capture_default_str();
  command->add_option("--seed", options->options.seed, "Seed of the resamples")
      ->check(whole_from<uint64_t>(0))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object with the official script's keys");
  command->add_flag("--quiet", options->quiet, "Do not list missing or unknown items");
  command->footer(help_text());
  command->callback([options] {
    // Both runs need the same items, and a wrong value says something about the run that has it only.
    options->join.marked_wrong = options->against.empty();
    score(*options);
  });
}

}  // namespace sheaf

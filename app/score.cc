#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

#include "app/job_options.h"
#include "app/terminal.h"
#include "io/base/named_output.h"
#include "io/files/score_run.h"
#include "io/jobs/finished_run.h"

namespace sheaf {
namespace {

struct ScoreCommand : ScoreSettings {
  std::string items;
  bool json = false, quiet = false;
};

void score(ScoreCommand& command) {
  const auto note = [&](const std::string& text) {
    if (!command.quiet) print_line(text, Stream::err);
  };
  std::optional<NamedOutput> items;
  if (!command.items.empty())
    items.emplace(command.items, std::vector{command.gold, command.job, command.predictions, command.against,
                                             command.judgements, command.schema});
  take_types(command, note);
  const ScoredRun run = score_run(command, note);
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

void add_score_command(Program& program) {
  auto options = std::make_shared<ScoreCommand>();
  add_command(
      program, "score", "Score predictions against gold answers, as the official scripts do",
      {{"--metric", options->metric, "The metric", kRequired, value_name(metric_names())},
       {"--gold", options->gold,
        "A dataset as downloaded (SQuAD, QuAC, DROP, RACE, ExtractGPT, ...), a corpus that `sheaf "
        "convert` wrote, or JSON lines {\"id\", \"answers\": [...]} or {\"id\", \"gold\": {attribute: "
        "value}}"},
       {"--job", options->job,
        "In place of --gold: a job whose corpus has the right answers in columns of its own"},
       {"--gold-column", options->gold_columns,
        "With --job: a column with them (may be repeated). extract: ATTRIBUTE=COLUMN, or a column of "
        "objects {attribute: value} (default: the columns named like attributes); ask: a column of "
        "answers",
        value_name("COLUMN"), kRepeatable},
       set_option(options->overrides, "With --job: override a key of the job, key.path=value"),
       {"--pred", options->predictions,
        "A run's folder, its rows-*.jsonl or .parquet, or a .json file {id: answer}; null means no answer"},
       {"--against", options->against,
        "Another run to compare with: shows the difference, its interval and a paired test"},
       {"--schema", options->schema,
        "attributes: the schema file, by whose types gold values are read, and for scores by type of value "
        "(default: that of --job or of the run)"},
       {"--judgements", options->judgements,
        "llm-f1: JSON lines {\"id\", \"judgements\": {attribute: word}} or {\"id\", \"reply\"}"},
       {"--gold-format", options->gold_format, "The dataset of --gold, if it is not recognized",
        value_name("NAME"), kWithDefault},
       {"--no-answer", options->join.no_answer,
        "A text that counts as no answer, such as unanswerable (may be repeated)", value_name("ANSWER"),
        kRepeatable},
       {"--skip-missing", options->join.skip_missing,
        "Leave out items without a prediction (such as after --limit) instead of scoring them as wrong"},
       {"--unmentioned-absent", options->join.unmentioned_absent,
        "attributes: count attributes that the gold does not name, as absent ones; a value for such "
        "an attribute is then invented (default: they are left out, as ExtractGPT does)"},
       {"--items", options->items, "Write the scores of each item to this file as JSON lines"},
       {"--resamples", options->options.resamples, "Resamples for intervals and tests (0: none)",
        whole_from(0, 1'000'000), kWithDefault},
       seed_option(options->options.seed, "Seed of the resamples"),
       {"--json", options->json, "Print one JSON object with the official script's keys"},
       {"--quiet,-q", options->quiet, "Do not list missing or unknown items"}},
      [options] {
        // Both runs need the same items, and a wrong value says something about the run that has it only.
        options->join.marked_wrong = options->against.empty();
        score(*options);
      })
      .footer(help_text());
}

}  // namespace sheaf

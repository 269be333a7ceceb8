#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <optional>

#include "app/checks.h"
#include "app/commands.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/metrics/score_report.h"
#include "io/base/file_layer.h"
#include "io/base/mapped_file.h"
#include "io/base/named_output.h"
#include "io/files/job_file.h"
#include "io/files/job_gold.h"
#include "io/files/metric_items.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

struct ScoreCommand {
  std::string metric, gold, gold_format = "auto", job, predictions, against, judgements, items;
  std::vector<std::string> gold_columns, overrides;
  JoinOptions join;
  ScoreOptions options;
  bool json = false, quiet = false;
};

void name_some(const std::string& what, const std::vector<std::string>& ids, const std::string& where) {
  constexpr size_t kShown = 5;
  if (ids.empty()) return;
  std::string list;
  for (size_t i = 0; i < std::min(ids.size(), kShown); ++i) list += (i == 0 ? "" : ", ") + shown(ids[i]);
  if (ids.size() > kShown) list += fmt::format(" and {} more", ids.size() - kShown);
  print_line(fmt::format("{}: {} {}: {}", where, ids.size(), what, list), Stream::err);
}

constexpr const char* kJobHint =
    "; if the right values are columns of the job's corpus, give --job JOB in place of --gold";

/// The items of each run to score, on the same gold answers.
class Input {
 public:
  Input(const ScoreCommand& command, const Metric& metric) : command_(command), metric_(metric) {
    const bool judged = metric.name == "llm-f1";
    if (judged && command.predictions.empty() == command.judgements.empty())
      refuse("llm-f1 counts judgements: give --judgements FILE, and leave out --gold and --pred");
    if (!judged && !command.judgements.empty())
      refuse("--judgements works only with --metric llm-f1; {} needs --gold and --pred", metric.name);
    if (!judged && (command.gold.empty() == command.job.empty() || command.predictions.empty()))
      refuse(
          "{} needs --pred RUN and the right answers: --gold FILE, or --job JOB if they are columns of the "
          "job's corpus; see `sheaf score --help`",
          metric.name);
    if (command.job.empty() && !(command.gold_columns.empty() && command.overrides.empty()))
      refuse("--gold-column and --set work only with --job");
    if (judged) return;
    if (!command.job.empty() && metric.name == "agreement")
      refuse("agreement compares two runs; name the other one with --gold, and leave out --job");
    if (!command.job.empty())
      gold_ = read_job_gold(read_job(command.job, command.overrides, false), command.gold_columns);
    else if (metric.name == "agreement")
      first_ = read_predictions(command.gold);
    else
      gold_ = read_gold(command.gold_format, command.gold, {.hint = kJobHint});
    const auto none = std::count_if(gold_.begin(), gold_.end(),
                                    [](const GoldAnswer& gold) { return gold.references.empty(); });
    if (metric.name == "squad1" && none > 0 && !command.quiet)
      print_line(
          fmt::format("{}: {} questions have no answer; squad1 gives no points for them; use --metric squad",
                      command.job.empty() ? command.gold : command.job, none),
          Stream::err);
  }

  const std::string& scored() const {
    return command_.judgements.empty() ? command_.predictions : command_.judgements;
  }

  MetricItems read(const std::string& path) const {
    if (metric_.name == "llm-f1") {
      MetricItems judged = read_judged_items(path);
      if (!command_.quiet) name_some("with a reply that cannot be read, left out", judged.unknown, path);
      return judged;
    }
    const Predictions predictions = read_predictions(path);
    MetricItems joined = metric_.name == "agreement" ? join_runs(first_, predictions, command_.join)
                                                     : join_gold(metric_, gold_, predictions, command_.join);
    if (!command_.quiet) {
      name_some(command_.join.skip_missing ? "without a prediction, left out"
                                           : "without a prediction, scored as wrong",
                joined.missing, path);
      name_some("with a prediction but not in the gold file, ignored", joined.unknown, path);
      name_some(command_.join.marked_wrong
                    ? "with another value than the one marked wrong, neither right nor wrong, left out"
                    : "of which gold knows only a wrong value, left out of the comparison",
                joined.unjudged, path);
    }
    return joined;
  }

 private:
  const ScoreCommand& command_;
  const Metric& metric_;
  std::vector<GoldAnswer> gold_;
  Predictions first_;
};

ScoreReport::Against compare(const ScoreCommand& command, const Input& input, const MetricItems& scored,
                             const Scores& scores) {
  const MetricItems other = input.read(command.against);
  const auto same_item = [](const MetricItem& a, const MetricItem& b) { return a.id == b.id; };
  if (!std::equal(scored.items.begin(), scored.items.end(), other.items.begin(), other.items.end(),
                  same_item))
    refuse("{} and {} do not have the same items; {}", input.scored(), command.against,
           command.join.skip_missing ? "leave out --skip-missing" : "both need the same ids");
  Scores others = score_items(*scores.metric, other.items, command.options);
  Comparison comparison = compare_scores(others, scores, command.options);
  return {command.against, std::move(others), std::move(comparison)};
}

void write_items(const NamedOutput& file, const MetricItems& joined, const Scores& scores) {
  std::string lines;
  const auto& names = scores.metric->scores;
  for (size_t i = 0; i < joined.items.size(); ++i) {
    const MetricItem& item = joined.items[i];
    ordered_json line{{"id", item.id}};
    for (size_t s = 0; s < names.size(); ++s)
      line[std::string(names[s])] = scores.items[i * names.size() + s];
    line["prediction"] = item.prediction ? ordered_json(*item.prediction) : ordered_json(nullptr);
    line["references"] = item.references;
    lines += line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  }
  file.write(lines);
}

void score(const ScoreCommand& command) {
  const Metric& metric = find_metric(command.metric);
  std::optional<NamedOutput> items;
  if (!command.items.empty())
    items.emplace(command.items, std::vector{command.gold, command.job, command.predictions, command.against,
                                             command.judgements});
  try {
    const Input input(command, metric);
    const MetricItems joined = input.read(input.scored());
    ScoreReport report;
    report.options = command.options;
    report.missing = static_cast<int64_t>(joined.missing.size());
    report.unknown = static_cast<int64_t>(joined.unknown.size());
    report.scores = score_items(metric, joined.items, command.options);
    report.groups = break_down(metric, joined.items);
    report.judged = judged_items(joined.items, report.scores);
    if (!command.against.empty()) report.against = compare(command, input, joined, report.scores);
    if (items) write_items(*items, joined, report.scores);
    command.json ? print_json(score_json(report)) : print_text(score_text(report));
  } catch (const nlohmann::json::exception& error) {
    refuse("{}: the extra data of the answers does not have the form that {} needs: {}",
           command.job.empty() ? command.gold : command.job, metric.name, error.what());
  }
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

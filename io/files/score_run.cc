#include "io/files/score_run.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "io/base/mapped_file.h"
#include "io/files/job_file.h"
#include "io/files/nested_items.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

using Note = std::function<void(const std::string&)>;

void note_some(const Note& note, const std::string& what, const std::vector<std::string>& ids,
               const std::string& where) {
  if (!ids.empty()) note(fmt::format("{}: {}", where, name_some(what, ids)));
}

constexpr const char* kJobHint =
    "; if the right values are columns of the job's corpus, give --job JOB in place of --gold";

/// The items of each run to score, on the same gold answers.
class ScoreInput {
 public:
  ScoreInput(const ScoreSettings& settings, const Metric& metric, const Note& note)
      : settings_(settings), metric_(metric), note_(note), join_(settings.join) {
    const bool judged = metric.name == "llm-f1";
    if (judged && settings.predictions.empty() == settings.judgements.empty())
      refuse("llm-f1 counts judgements: give --judgements FILE, and leave out --gold and --pred");
    if (!judged && !settings.judgements.empty())
      refuse("--judgements works only with --metric llm-f1; {} needs --gold and --pred", metric.name);
    if (!judged && !settings.gold.empty() && !settings.job.empty())
      refuse("--gold and --job both name the right answers; give one of them");
    if (!judged && ((settings.gold.empty() && settings.job.empty()) || settings.predictions.empty()))
      refuse(
          "{} needs --pred RUN and the right answers: --gold FILE, or --job JOB if they are columns of the "
          "job's corpus; see `sheaf score --help`",
          metric.name);
    if (!settings.schema.empty() && metric.name != "attributes")
      refuse("--schema works only with --metric attributes, whose scores it divides by type of value");
    if (settings.job.empty() && !(settings.gold_columns.empty() && settings.overrides.empty()))
      refuse("--gold-column and --set work only with --job");
    if (judged) return;
    if (!settings.job.empty() && metric.name == "agreement")
      refuse("agreement compares two runs; name the other one with --gold, and leave out --job");
    std::string schema = settings.schema, locale = settings.locale;
    if (!settings.job.empty()) {
      Job job = read_job(settings.job, settings.overrides, false);
      if (schema.empty() && metric.name == "attributes") schema = job.task.schema;
      locale = job.input.locale;
      gold_ = read_job_gold(std::move(job), settings.gold_columns);
    } else if (metric.name == "agreement") {
      first_ = read_predictions(settings.gold);
    } else {
      gold_ = read_gold(settings.gold_format, settings.gold, {.hint = kJobHint});
    }
    if (!schema.empty()) {
      auto read = std::make_shared<Schema>(read_schema(schema));
      add_locale(*read, find_locale(locale).value_or(Locale()));
      join_.schema = std::move(read);
    }
    const auto none = std::count_if(gold_.begin(), gold_.end(),
                                    [](const GoldAnswer& gold) { return gold.references.empty(); });
    if (metric.name == "squad1" && none > 0)
      note(fmt::format("{}: {} questions have no answer; squad1 gives no points for them; use --metric squad",
                       settings.job.empty() ? settings.gold : settings.job, none));
  }

  const std::string& scored() const {
    return settings_.judgements.empty() ? settings_.predictions : settings_.judgements;
  }

  MetricItems read(const std::string& path) const {
    if (metric_.name == "llm-f1") {
      MetricItems judged = read_judged_items(path);
      note_some(note_, "with a reply that cannot be read, left out", judged.unknown, path);
      return judged;
    }
    const Predictions predictions = read_predictions(path);
    MetricItems joined = metric_.name == "agreement" ? join_runs(first_, predictions, join_)
                                                     : join_gold(metric_, gold_, predictions, join_);
    note_some(note_,
              settings_.join.skip_missing ? "without a prediction, left out"
                                          : "without a prediction, scored as wrong",
              joined.missing, path);
    note_some(note_, "with a prediction but not in the gold file, ignored", joined.unknown, path);
    note_some(note_,
              settings_.join.marked_wrong
                  ? "with another value than the one marked wrong, neither right nor wrong, left out"
                  : "of which gold knows only a wrong value, left out of the comparison",
              joined.unjudged, path);
    if (join_.schema) set_types(joined.items);
    for (const std::string& notice : join_notices(joined, path, settings_.join)) note_(notice);
    return joined;
  }

 private:
  /// Tells each item what type its attribute has. Gold that names no category leaves an attribute without a
  /// type if categories differ about it.
  void set_types(std::vector<MetricItem>& items) const {
    std::map<std::pair<std::string, std::string>, std::set<std::string_view>> types;
    const auto add = [&](const Category& category, const Attribute& attribute, const std::string& name,
                         const std::string& path, const auto& add_field) -> void {
      for (const std::string& known : {category.name, std::string()})
        types[{known, name}].insert(type_word(attribute.type));
      for (const Attribute& field : attribute.fields) {
        const std::string inner = path + "." + path_key(field.name);
        add_field(category, field, inner, inner, add_field);
      }
    };
    for (const Category& category : join_.schema->categories)
      for (const Attribute& attribute : category.attributes)
        add(category, attribute, attribute.name, path_key(attribute.name), add);
    std::set<std::string> strange;
    for (MetricItem& item : items) {
      if (item.entries) continue;
      const auto found = types.find({item.category, item.attribute});
      if (found != types.end() && found->second.size() == 1)
        item.type = *found->second.begin();
      else
        strange.insert(item.attribute);
    }
    note_some(note_, "whose type the schema does not tell, left out of the scores by type",
              {strange.begin(), strange.end()}, scored());
  }

  const ScoreSettings& settings_;
  const Metric& metric_;
  const Note& note_;
  std::vector<GoldAnswer> gold_;
  JoinOptions join_;
  Predictions first_;
};

ScoreReport::Against compare(const ScoreSettings& settings, const ScoreInput& input,
                             const MetricItems& scored, const Scores& scores) {
  const MetricItems other = input.read(settings.against);
  const auto same_item = [](const MetricItem& a, const MetricItem& b) { return a.id == b.id; };
  if (!std::equal(scored.items.begin(), scored.items.end(), other.items.begin(), other.items.end(),
                  same_item))
    refuse("{} and {} do not have the same items; {}", input.scored(), settings.against,
           settings.join.skip_missing ? "leave out --skip-missing" : "both need the same ids");
  Scores others = score_items(*scores.metric, other.items, settings.options);
  Comparison comparison = compare_scores(others, scores, settings.options);
  return {settings.against, std::move(others), std::move(comparison)};
}

}  // namespace

std::string ScoredRun::item_lines() const {
  std::string lines;
  const Scores& scores = report.scores;
  const auto& names = scores.metric->scores;
  for (size_t i = 0; i < items.size(); ++i) {
    ordered_json line{{"id", items[i].id}};
    for (size_t s = 0; s < names.size(); ++s)
      line[std::string(names[s].name)] = scores.items[i * names.size() + s];
    line["prediction"] = items[i].prediction ? ordered_json(*items[i].prediction) : ordered_json(nullptr);
    line["references"] = items[i].references;
    lines += line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  }
  return lines;
}

ScoredRun score_run(const ScoreSettings& settings, const Note& note) {
  const Metric& metric = find_metric(settings.metric);
  try {
    const ScoreInput input(settings, metric, note);
    MetricItems joined = input.read(input.scored());
    ScoredRun run;
    run.report.options = settings.options;
    run.report.missing = static_cast<int64_t>(joined.missing.size());
    run.report.unknown = static_cast<int64_t>(joined.unknown.size());
    run.report.repeated = joined.repeated_rows;
    run.report.ambiguous = static_cast<int64_t>(joined.ambiguous.size());
    run.report.scores = score_items(metric, joined.items, settings.options);
    run.report.groups = break_down(metric, joined.items);
    run.report.types = break_down_by_type(metric, joined.items);
    run.report.judged = judged_items(joined.items, run.report.scores);
    if (!settings.against.empty()) run.report.against = compare(settings, input, joined, run.report.scores);
    run.items = std::move(joined.items);
    return run;
  } catch (const nlohmann::json::exception& error) {
    refuse("{}: the extra data of the answers does not have the form that {} needs: {}",
           settings.job.empty() ? settings.gold : settings.job, metric.name, error.what());
  }
}

}  // namespace sheaf

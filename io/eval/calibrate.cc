#include "io/eval/calibrate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/text/table.h"
#include "io/datasets/gold.h"
#include "io/files/job_file.h"
#include "io/files/metric_items.h"
#include "io/jobs/finished_run.h"
#include "io/run_folder/manifest.h"

namespace sheaf {
namespace {

constexpr size_t kFewest = 20;  // a scale from fewer judgements would be chance
constexpr double kShownStep = 1;

std::vector<std::string_view> judging_metrics() {
  std::vector<std::string_view> judging;
  for (const Metric& metric : all_metrics())
    if (metric.right >= 0) judging.push_back(metric.name);
  return judging;
}

/// The run's null bias. Refuses a run whose rows cannot be calibrated, by this metric.
double check_run(const std::string& run, const Metric& metric) {
  const Manifest manifest =
      read_manifest(run, "name the folder of a finished run with output.confidence: true");
  const auto& print = manifest.fingerprint;
  const auto job = print.value("job", nlohmann::ordered_json::object());
  const bool extract =
      job.value("task", nlohmann::ordered_json::object()).value("kind", "extract") == "extract";
  if (!extract && metric.name == "attributes")
    refuse(
        "{}: this is not the run of an extract job; name the metric that judges its answers: --metric, one "
        "of {}",
        run, fmt::join(judging_metrics(), ", "));
  const auto output = job.value("output", nlohmann::ordered_json::object());
  if (!output.value("confidence", false))
    refuse("{}: the rows have no confidence; run the job again with output.confidence: true", run);
  if (print.contains("calibration"))
    refuse(
        "{}: the confidence of its rows is already calibrated; run the job again without "
        "output.calibration",
        run);
  return job.value("method", nlohmann::ordered_json::object()).value("null_bias", 0.0);
}

const Metric& judging_metric(const std::string& name) {
  const Metric& metric = find_metric(name);
  if (metric.right < 0)
    refuse("--metric {} does not judge each answer right or wrong; use one of {}", name,
           fmt::join(judging_metrics(), ", "));
  return metric;
}

/// Digits that a fit can mean, so that the file is short.
double rounded(double value) {
  return std::round(value * 1e6) / 1e6;
}

ConfidenceScales::Part fit_part(const std::vector<Judged>& judged, CalibrationErrors& errors) {
  ConfidenceScales::Part part;
  const ConfidenceScale fit = fit_scale(judged);
  part.scale = {std::clamp(rounded(fit.temperature), 0.01, 100.0), rounded(fit.offset)};
  part.items = static_cast<int64_t>(judged.size());
  part.right = std::ranges::count(judged, true, &Judged::right);
  std::vector<Judged> scaled = judged;
  for (Judged& one : scaled) one.confidence = part.scale.apply(one.confidence);
  errors = {calibration_error(judged), calibration_error(scaled)};
  return part;
}

/// A path that means the same in a job, which looks from its own folder.
std::string absolute_path(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

std::string part_line(const char* what, const ConfidenceScales::Part& part, const CalibrationErrors& errors) {
  return fmt::format(
      "{:<8} {:>6} judged, {:>6} right   temperature {:.4f}, offset {:+.4f}   expected calibration error "
      "{:.4f}, "
      "scaled {:.4f}\n",
      what, part.items, part.right, part.scale.temperature, part.scale.offset, errors.before, errors.after);
}

/// Of values and nulls together.
CalibrationErrors all_errors(const CalibrateResult& result) {
  if (!result.nulls) return result.values;
  const auto values = static_cast<double>(result.scales.values.items),
             nulls = static_cast<double>(result.scales.nulls.items);
  const auto mean = [&](double of_values, double of_nulls) {
    return (of_values * values + of_nulls * nulls) / (values + nulls);
  };
  return {mean(result.values.before, result.nulls->before), mean(result.values.after, result.nulls->after)};
}

/// The values of a metric that say how good answers are.
std::vector<size_t> swept_values(const Metric& metric, const BiasScores& scores) {
  std::vector<size_t> shown;
  for (size_t i = 0; i < metric.values.size(); ++i)
    if (!metric.values[i].is_count && !std::isnan(scores.values[i])) shown.push_back(i);
  return shown;
}

std::string sweep_text(const CalibrateSettings& settings, const CalibrateResult& result) {
  const BiasScores& best = best_bias(result.sweep);
  const Metric& metric = find_metric(settings.metric);
  const bool attributes = metric.name == "attributes";
  const std::vector<size_t> shown =
      attributes ? std::vector<size_t>{0, 1, 2} : swept_values(metric, result.sweep.front());
  TextTable table{{{"null_bias"}}, {true}};
  for (const size_t value : shown) table.rows[0].push_back(fmt::format("{:>7}", metric.values[value].name));
  if (attributes) table.rows[0] = {"null_bias", "precision", " recall", "     F1"};
  if (!attributes) table.rows[0].emplace_back("null %");
  table.rows[0].emplace_back("");
  table.right.assign(table.rows[0].size() - 1, true);
  for (const BiasScores& one : result.sweep) {
    const double steps = (one.bias - result.ran_with) / kShownStep;
    if (&one != &best && steps != std::floor(steps)) continue;
    TextTable::Row& row = table.rows.emplace_back();
    row.push_back(fmt::format("{:.2f}", one.bias));
    for (const size_t value : shown) row.push_back(fmt::format("{:.2f}", one.values[value]));
    if (!attributes) row.push_back(fmt::format("{:.1f}", 100 * one.nulls));
    row.emplace_back(&one != &best ? ""
                     : attributes  ? "best F1"
                                   : fmt::format("best {}", metric.values[bias_value(metric)].name));
  }
  std::string text = "\n" + table.text();
  if (result.fixed > 0)
    text += fmt::format(
        "This table cannot tell at which bias {} of the values become null, and keeps them: the model writes "
        "null in several tokens, or sheaf split their document. To see them, run the job with the bias.\n",
        result.fixed);
  text += fmt::format(
      "A smaller null_bias than {:g}, that of the run, would turn nulls into values that were not decoded; "
      "to "
      "see it, run the job with it.\n",
      result.ran_with);
  return text;
}

std::string promise_line(const char* what, const CalibrateSettings& settings, int64_t judged,
                         const std::optional<PromisedThreshold>& promise) {
  if (promise)
    return fmt::format("{:<8} from {:.6f} on: {} of {} taken, {} of them right; at least {:.4f} of all are\n",
                       what, promise->at_least, promise->taken, judged, promise->right, promise->bound);
  const int64_t fewest = fewest_to_promise(settings.precision, settings.risk);
  return fmt::format(
      "{:<8} none can be taken: {}\n", what,
      judged < fewest
          ? fmt::format("the gold answers judge {} of them, and a promise needs {} or more", judged, fewest)
          : fmt::format("too few of the surest of the {} judged ones are right", judged));
}

/// What a job of another model may take from this run.
std::string trust_text(const CalibrateSettings& settings, const CalibrateResult& result) {
  std::string text = fmt::format(
      "\nPrecision of at least {:g} with a probability of {:g}, for records like those of the sample:\n",
      settings.precision, 1 - settings.risk);
  text += promise_line("values", settings, result.scales.values.items, result.trusted_values);
  text += promise_line("nulls", settings, result.judged_nulls, result.trusted_nulls);
  if (!result.trusted_values && !result.trusted_nulls) return text;
  // Confidence is at most 1: a least one of 1 takes next to nothing.
  const auto least = [](const std::optional<PromisedThreshold>& promise) {
    return promise ? std::floor(promise->at_least * 1e6) / 1e6 : 1.0;
  };
  return text + fmt::format(
                    "In the job of another model:\n  task: {{trust: {{run: {}, at_least: {:g}, "
                    "nulls_at_least: {:g}}}}}\n",
                    absolute_path(settings.run), least(result.trusted_values), least(result.trusted_nulls));
}

}  // namespace

CalibrateResult calibrate_confidence(const CalibrateSettings& settings) {
  const Metric& metric = judging_metric(settings.metric);
  CalibrateResult result;
  result.ran_with = check_run(settings.run, metric);
  const std::vector<GoldAnswer> gold = read_gold(settings.gold_format, settings.gold);
  JoinOptions options{
      .no_answer = {}, .skip_missing = true, .unmentioned_absent = settings.unmentioned_absent};
  if (metric.name == "attributes") {
    const RunTypes types =
        types_of_run(settings.run, [&](const std::string& text) { result.notices.push_back(text); });
    if (!types.schema.empty()) {
      auto schema = std::make_shared<Schema>(read_schema(types.schema));
      add_locale(*schema, find_locale(types.locale).value_or(Locale()));
      options.schema = std::move(schema);
    }
  }
  const MetricItems joined = join_gold(metric, gold, read_predictions(settings.run), options);
  for (std::string& notice : join_notices(joined, settings.run, options))
    result.notices.push_back(std::move(notice));
  const JudgedItems judged = judged_items(joined.items, score_items(metric, joined.items, {.resamples = 0}));
  if (judged.values.size() < kFewest)
    refuse("{}: the gold answers judge {} of its {}; {} or more are needed", settings.run,
           judged.values.size(), metric.name == "attributes" ? "values" : "answers that are not null",
           kFewest);
  result.judged_nulls = std::ssize(judged.nulls);
  result.scales.metric = metric.name;
  result.scales.values = fit_part(judged.values, result.values);
  if (judged.nulls.size() < kFewest)
    result.why_no_nulls = fmt::format(
        "the gold answers judge {} of them, and {} or more are needed{}", judged.nulls.size(), kFewest,
        metric.name == "attributes" && !settings.unmentioned_absent
            ? "; use --unmentioned-absent if attributes that the gold does not name are absent"
            : "");
  else
    result.scales.nulls = fit_part(judged.nulls, result.nulls.emplace());
  if (settings.precision > 0) {
    result.trusted_values = promise_precision(judged.values, settings.precision, settings.risk);
    result.trusted_nulls = promise_precision(judged.nulls, settings.precision, settings.risk);
  }
  const bool margins =
      std::ranges::any_of(joined.items, [](const MetricItem& item) { return item.null_margin.has_value(); });
  if (metric.name == "attributes" || margins) {
    result.sweep = sweep_null_bias(metric, joined.items, result.ran_with);
    result.fixed = values_without_margin(joined.items);
  }
  return result;
}

std::string calibrate_text(const CalibrateSettings& settings, const CalibrateResult& result,
                           const std::string& file) {
  std::string text = part_line("values", result.scales.values, result.values);
  text += result.nulls ? part_line("nulls", result.scales.nulls, *result.nulls)
                       : fmt::format("nulls    keep their confidence: {}\n", result.why_no_nulls);
  if (!result.sweep.empty()) text += sweep_text(settings, result);
  text += fmt::format("\nwrote {}\n", file);
  std::string job;
  if (const CalibrationErrors all = all_errors(result); all.after < all.before)
    job += fmt::format("  output: {{confidence: true, calibration: {}}}\n", absolute_path(file));
  else
    text += fmt::format(
        "The scaled error {:.4f} is not smaller than the plain one {:.4f}: keep the plain confidence, "
        "without "
        "this file.\n",
        all.after, all.before);
  if (!result.sweep.empty())
    if (const double best = best_bias(result.sweep).bias; best != result.ran_with)
      job += fmt::format("  method: {{null_bias: {:g}}}\n", best);
  if (!job.empty()) text += "In the job:\n" + job;
  return settings.precision > 0 ? text + trust_text(settings, result) : text;
}

}  // namespace sheaf

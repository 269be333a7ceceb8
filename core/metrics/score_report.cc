#include "core/metrics/score_report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "core/text/printable.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

bool has_macro(const ScoreReport& report) {
  return report.scores.metric->name == "attributes";
}

constexpr const char* kMacroNames[] = {"macro_precision", "macro_recall", "macro_f1"};

ordered_json number(double value, bool is_count) {
  if (std::isnan(value)) return nullptr;
  if (is_count) return static_cast<int64_t>(value);
  return value;
}

/// The values by name; null where one has nothing to stand on.
ordered_json named(const Metric& metric, const std::vector<double>& values) {
  ordered_json json = ordered_json::object();
  for (size_t v = 0; v < values.size(); ++v)
    if (!metric.values[v].optional || !std::isnan(values[v]))
      json[std::string(metric.values[v].name)] = number(values[v], metric.values[v].is_count);
  return json;
}

std::string figure_text(double value, bool is_count, size_t width, int decimals) {
  if (std::isnan(value)) return fmt::format("{:>{}}", "-", width);
  if (is_count) return fmt::format("{:>{}}", static_cast<int64_t>(value), width);
  return fmt::format("{:>{}.{}f}", value, width, decimals);
}

ordered_json against_json(const ScoreReport& report) {
  const Metric& metric = *report.scores.metric;
  const auto& [path, scores, comparison] = *report.against;
  ordered_json json{{"path", path}};
  json.update(named(metric, scores.values));
  for (size_t v = 0; v < metric.values.size(); ++v)
    if (const auto& value = comparison.values[v])
      json["differences"][std::string(metric.values[v].name)] = {
          {"difference", value->difference},
          {"interval", {value->interval.low, value->interval.high}},
          {"p_value", value->p_value}};
  if (comparison.mcnemar)
    json["mcnemar"] = {{"only_pred", comparison.mcnemar->only_second},
                       {"only_against", comparison.mcnemar->only_first},
                       {"p_value", comparison.mcnemar->p_value}};
  return json;
}

ordered_json groups_json(const ScoreReport& report) {
  ordered_json groups = ordered_json::object();
  for (const Group& group : report.groups) {
    ordered_json values = named(*report.scores.metric, group.values);
    if (group.attribute.empty())
      groups[group.category] = std::move(values);
    else
      groups[group.category]["attributes"][group.attribute] = std::move(values);
  }
  return groups;
}

std::string p_text(double p_value, double least) {
  least = std::max(least, 0.0001);
  return p_value <= least ? fmt::format("p < {:.4f}", least * 1.0001) : fmt::format("p = {:.4f}", p_value);
}

std::string value_line(const ScoreReport& report, size_t v) {
  const Metric& metric = *report.scores.metric;
  const double value = report.scores.values[v];
  if (metric.values[v].optional && std::isnan(value)) return {};
  std::string line =
      fmt::format("  {:<18}{}", metric.values[v].name, figure_text(value, metric.values[v].is_count, 9, 4));
  if (const auto& interval = report.scores.intervals[v])
    line += fmt::format("   {:>8.4f} to {:>8.4f}", interval->low, interval->high);
  if (report.against)
    if (const auto& difference = report.against->comparison.values[v])
      line += fmt::format("   {:>8.4f}   {:>+8.4f}   {:>+8.4f} to {:>+8.4f}   {}",
                          report.against->scores.values[v], difference->difference, difference->interval.low,
                          difference->interval.high,
                          p_text(difference->p_value, 1.0 / (report.options.resamples + 1)));
  if (!metric.values[v].about.empty()) line += fmt::format("   {}", metric.values[v].about);
  return line + "\n";
}

std::string group_name(const Group& group) {
  return group.attribute.empty() ? printable_line(group.category) : "  " + printable_line(group.attribute);
}

std::string group_lines(const ScoreReport& report) {
  const Metric& metric = *report.scores.metric;
  size_t width = 8;
  for (const Group& group : report.groups) width = std::max(width, group_name(group).size());
  std::string text = fmt::format("\n  {:<{}}", "", width);
  for (const auto& value : metric.values)
    text += fmt::format(" {:>{}}", value.name, std::max<size_t>(value.name.size(), 8));
  text += "\n";
  for (const Group& group : report.groups) {
    text += fmt::format("  {:<{}}", group_name(group), width);
    for (size_t v = 0; v < group.values.size(); ++v) {
      const size_t column = std::max<size_t>(metric.values[v].name.size(), 8);
      text += " " + figure_text(group.values[v], metric.values[v].is_count, column, metric.best > 1 ? 2 : 4);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

ordered_json score_json(const ScoreReport& report) {
  const Metric& metric = *report.scores.metric;
  ordered_json json = named(metric, report.scores.values);
  if (has_macro(report)) {
    const std::vector<double> macro = macro_scores(report.groups);
    for (size_t m = 0; m < macro.size(); ++m) json[kMacroNames[m]] = macro[m];
  }
  json["metric"] = metric.name;
  json["missing"] = report.missing;
  json["unknown"] = report.unknown;
  if (report.options.resamples > 0) {
    json["resamples"] = report.options.resamples;
    json["seed"] = report.options.seed;
    for (size_t v = 0; v < metric.values.size(); ++v)
      if (const auto& interval = report.scores.intervals[v])
        json["intervals"][std::string(metric.values[v].name)] = {interval->low, interval->high};
  }
  if (!report.groups.empty()) json["groups"] = groups_json(report);
  const JudgedItems& judged = report.judged;
  if (!judged.values.empty())
    json["confidence"]["values"] = confidence_json(summarize_confidence(judged.values));
  if (!judged.nulls.empty())
    json["confidence"]["nulls"] = confidence_json(summarize_confidence(judged.nulls));
  if (!judged.attributes.empty()) json["confidence"]["attributes"] = attribute_confidence_json(judged);
  if (report.against) json["against"] = against_json(report);
  return json;
}

std::string score_text(const ScoreReport& report) {
  const Metric& metric = *report.scores.metric;
  std::string text = fmt::format("{:<20}{:>9}", metric.name, "");
  if (report.options.resamples > 0) text += fmt::format("   {:<20}", "95 % interval");
  if (report.against) text += fmt::format("   {:>8}   {:>8}   95 % interval", "against", "change");
  text.erase(text.find_last_not_of(' ') + 1);
  text += "\n";
  for (size_t v = 0; v < metric.values.size(); ++v) text += value_line(report, v);
  if (has_macro(report)) {
    const std::vector<double> macro = macro_scores(report.groups);
    for (size_t m = 0; m < macro.size(); ++m)
      text += fmt::format("  {:<18}{:>9.4f}   mean over attributes\n", kMacroNames[m], macro[m]);
  }
  if (report.against && report.against->comparison.mcnemar) {
    const auto& test = *report.against->comparison.mcnemar;
    text += fmt::format("  {} right only in --pred, {} only in --against: {} (McNemar, exact)\n",
                        test.only_second, test.only_first, p_text(test.p_value, 0));
  }
  if (const auto& values = report.judged.values; !values.empty())
    text += confidence_text(summarize_confidence(values), "values");
  if (const auto& nulls = report.judged.nulls; !nulls.empty())
    text += confidence_text(summarize_confidence(nulls), "nulls");
  if (!report.groups.empty() && !report.against) text += group_lines(report);
  return text;
}

}  // namespace sheaf

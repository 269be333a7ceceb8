#include "core/metrics/score_report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "core/text/printable.h"
#include "core/text/table.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

bool has_macro(const ScoreReport& report) {
  return report.scores.metric->name == "attributes" && !report.groups.empty();
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

/// A value of the metric, or "-" where it has none, to the right of `width` characters.
std::string figure_text(double value, bool is_count, size_t width, int decimals) {
  if (std::isnan(value)) return pad_text("-", width, true);
  return pad_text(is_count ? fmt::format("{:.0f}", value) : fmt::format("{:.{}f}", value, decimals), width,
                  true);
}

ordered_json against_json(const ScoreReport& report) {
  const Metric& metric = *report.scores.metric;
  const auto& against = *report.against;
  const auto& comparison = against.comparison;
  ordered_json json{{"path", against.path}};
  json.update(named(metric, against.scores.values));
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

// Of the metric `attributes`.
constexpr size_t kF1 = 2, kNn = 3, kVn = 5, kVw = 7;

/// Values that the gold has: missed, right or wrong.
double gold_values(const Group& group) {
  return std::accumulate(group.values.begin() + kVn, group.values.begin() + kVw + 1, 0.0);
}

/// Whether no value of a group was counted: it is a list of objects, whose fields are groups of their own.
bool has_entries_alone(const Metric& metric, const Group& group) {
  return metric.name == "attributes" &&
         std::all_of(group.values.begin() + kNn, group.values.begin() + kVw + 1,
                     [](double count) { return count == 0; });
}

ordered_json types_json(const ScoreReport& report) {
  ordered_json types = ordered_json::object();
  for (const Group& group : report.types) {
    ordered_json& type = types[group.category] = {{"values", number(gold_values(group), true)}};
    type.update(named(*report.scores.metric, group.values));
  }
  return types;
}

std::string type_lines(const ScoreReport& report) {
  std::string text =
      fmt::format("\nby type   {:>8} {:>10} {:>8} {:>8}\n", "values", "precision", "recall", "f1");
  for (const Group& group : report.types)
    text += fmt::format("  {:<8}{:>8.0f} {:>10.2f} {:>8.2f} {:>8.2f}\n", group.category, gold_values(group),
                        group.values[0], group.values[1], group.values[2]);
  return text;
}

std::string p_text(double p_value, double least) {
  least = std::max(least, 0.0001);
  return p_value <= least ? fmt::format("p < {:.4f}", least * 1.0001) : fmt::format("p = {:.4f}", p_value);
}

std::string value_line(const ScoreReport& report, size_t v) {
  const Metric& metric = *report.scores.metric;
  const double value = report.scores.values[v];
  const auto& [name, is_count, optional, about] = metric.values[v];
  if (optional && std::isnan(value)) return {};
  std::string line = "  " + pad_text(std::string(name), 18) + figure_text(value, is_count, 9, 4);
  if (const auto& interval = report.scores.intervals[v])
    line += fmt::format("   {:>8.4f} to {:>8.4f}", interval->low, interval->high);
  if (report.against)
    if (const auto& difference = report.against->comparison.values[v])
      line += fmt::format("   {:>8.4f}   {:>+8.4f}   {:>+8.4f} to {:>+8.4f}   {}",
                          report.against->scores.values[v], difference->difference, difference->interval.low,
                          difference->interval.high,
                          p_text(difference->p_value, 1.0 / (report.options.resamples + 1)));
  return line + (about.empty() ? "" : fmt::format("   {}", about)) + "\n";
}

std::string group_name(const Group& group) {
  return (group.attribute.empty() ? "  " : "    ") +
         printable_line(group.attribute.empty() ? group.category : group.attribute);
}

/// The values that the table of groups shows: optional ones where a group has them.
std::vector<size_t> shown_values(const ScoreReport& report) {
  const Metric& metric = *report.scores.metric;
  std::vector<size_t> shown;
  for (size_t v = 0; v < metric.values.size(); ++v)
    if (!metric.values[v].optional ||
        std::ranges::any_of(report.groups, [&](const Group& group) { return !std::isnan(group.values[v]); }))
      shown.push_back(v);
  return shown;
}

std::string group_lines(const ScoreReport& report) {
  constexpr size_t kNarrowest = 8;
  const Metric& metric = *report.scores.metric;
  size_t width = 2 + kNarrowest;
  for (const Group& group : report.groups) width = std::max(width, count_characters(group_name(group)));
  const auto column = [&](size_t v) { return std::max(metric.values[v].name.size(), kNarrowest); };
  const std::vector<size_t> shown = shown_values(report);
  std::string text = "\n" + pad_text("", width);
  for (const size_t v : shown) text += " " + pad_text(std::string(metric.values[v].name), column(v), true);
  text += "\n";
  for (const Group& group : report.groups) {
    text += pad_text(group_name(group), width);
    const bool entries_alone = has_entries_alone(metric, group);
    for (const size_t v : shown)
      text += " " + figure_text(entries_alone && v <= kF1 ? NAN : group.values[v], metric.values[v].is_count,
                                column(v), metric.best > 1 ? 2 : 4);
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
  json["repeated"] = report.repeated;
  json["ambiguous"] = report.ambiguous;
  if (report.options.resamples > 0) {
    json["resamples"] = report.options.resamples;
    json["seed"] = report.options.seed;
    for (size_t v = 0; v < metric.values.size(); ++v)
      if (const auto& interval = report.scores.intervals[v])
        json["intervals"][std::string(metric.values[v].name)] = {interval->low, interval->high};
  }
  if (!report.types.empty()) json["types"] = types_json(report);
  if (!report.groups.empty()) json["groups"] = groups_json(report);
  if (ordered_json worth = confidence_json(report.judged); !worth.empty())
    json["confidence"] = std::move(worth);
  if (report.against) json["against"] = against_json(report);
  return json;
}

std::string score_text(const ScoreReport& report) {
  const Metric& metric = *report.scores.metric;
  std::string text = pad_text(std::string(metric.name), 29);
  if (report.options.resamples > 0) text += "   " + pad_text("95 % interval", 20);
  if (report.against) text += "    against     change   95 % interval";
  text.erase(text.find_last_not_of(' ') + 1);
  text += "\n";
  for (size_t v = 0; v < metric.values.size(); ++v) text += value_line(report, v);
  if (has_macro(report)) {
    const std::vector<double> macro = macro_scores(report.groups);
    for (size_t m = 0; m < macro.size(); ++m)
      text += "  " + pad_text(kMacroNames[m], 18) + figure_text(macro[m], false, 9, 4) +
              "   mean over attributes\n";
  }
  if (report.against && report.against->comparison.mcnemar) {
    const auto& test = *report.against->comparison.mcnemar;
    text += fmt::format("  {} right only in --pred, {} only in --against: {} (McNemar, exact)\n",
                        test.only_second, test.only_first, p_text(test.p_value, 0));
  }
  text += confidence_text(report.judged);
  if (!report.types.empty() && !report.against) text += type_lines(report);
  if (!report.groups.empty() && !report.against) text += group_lines(report);
  return text;
}

}  // namespace sheaf

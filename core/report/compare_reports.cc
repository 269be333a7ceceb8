#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "core/report/report_fields.h"
#include "core/report/report_html.h"
#include "core/report/svg_plot.h"
#include "core/text/format.h"
#include "core/text/table.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

using Better = ReportField::Better;

constexpr std::string_view kDifferent =
    "These runs read different corpora or different parts of one, so nothing is marked as best.";

/// Whether the runs read different corpora, as far as their reports say.
bool different_corpora(const std::vector<NamedReport>& reports) {
  const auto facts = [](const ordered_json& report) {
    const ordered_json corpus = report.value("corpus", ordered_json::object());
    return std::pair(corpus.value("sha256", std::string()), corpus.value("limit", int64_t{0}));
  };
  return std::ranges::any_of(reports, [&](const NamedReport& report) {
    return facts(report.json) != facts(reports[0].json) && report.json.contains("settings") &&
           reports[0].json.contains("settings");
  });
}

bool is_in_any(const ReportField& field, const std::vector<NamedReport>& reports) {
  return std::ranges::any_of(reports,
                             [&](const NamedReport& report) { return field.value(report.json).has_value(); });
}

/// What earlier reports do not have is left empty.
ComparedFact compare_texts(const ReportField& field, const std::vector<NamedReport>& reports) {
  ComparedFact fact{std::string(field.title), {}, std::vector<bool>(reports.size()), true};
  for (const auto& [name, report] : reports)
    fact.cells.push_back(report.contains(field.pointer()) ? report.at(field.pointer()).get<std::string>()
                                                          : "-");
  return fact;
}

ComparedFact compare_numbers(const ReportField& field, const std::vector<NamedReport>& reports,
                             bool comparable) {
  ComparedFact fact{std::string(field.title), {}, {}, false};
  size_t best = 0;
  std::vector<double> values;
  for (size_t i = 0; i < reports.size(); ++i) {
    values.push_back(field.value(reports[i].json).value_or(0));
    fact.cells.push_back((field.show ? field.show : number_text)(values[i]));
    if (field.better == Better::more ? values[i] > values[best] : values[i] < values[best]) best = i;
  }
  // Runs that look equal are equal.
  const std::string& winner = fact.cells[best];
  const bool ranked = comparable && field.better != Better::neither &&
                      std::ranges::count(fact.cells, winner) < std::ssize(values);
  for (const std::string& cell : fact.cells) fact.best.push_back(ranked && cell == winner);
  return fact;
}

std::string plots_html(const std::vector<NamedReport>& reports, const char* title,
                       const std::function<std::string(const ordered_json&)>& plot) {
  std::string out = fmt::format("<h2>{}</h2>\n<div class=\"beside\">\n", title);
  for (const NamedReport& report : reports)
    out += "<section><h2>" + escaped(report.name) + "</h2>\n" + plot(report.json) + "</section>\n";
  return out + "</div>\n";
}

}  // namespace

std::vector<ComparedFact> compare_reports(const std::vector<NamedReport>& reports) {
  const bool comparable = !different_corpora(reports);
  std::vector<ComparedFact> facts;
  for (const ReportField& field : report_fields()) {
    if (field.title.empty()) continue;
    if (field.kind == ReportField::Kind::text)
      facts.push_back(compare_texts(field, reports));
    else if (field.always || is_in_any(field, reports))
      facts.push_back(compare_numbers(field, reports, comparable));
  }
  return facts;
}

std::string comparison_text(const std::vector<NamedReport>& reports) {
  TextTable table;
  table.rows.push_back({""});
  for (const NamedReport& report : reports) table.rows[0].push_back(report.name);
  bool starred = false;
  for (const ComparedFact& fact : compare_reports(reports)) {
    TextTable::Row row{fact.name};
    for (size_t i = 0; i < fact.cells.size(); ++i) {
      row.push_back(fact.cells[i] + (fact.best[i] ? " *" : ""));
      starred |= fact.best[i];
    }
    table.rows.push_back(std::move(row));
  }
  std::string out = table.text();
  if (different_corpora(reports)) out += std::string(kDifferent) + "\n";
  return starred ? out + "* best\n" : out;
}

std::string comparison_html(const std::vector<NamedReport>& reports) {
  std::string body = fmt::format(
      "<h1>{} runs side by side</h1>\n<section class=\"scroll\"><table><tr><th></th>", reports.size());
  for (const NamedReport& report : reports) body += "<th class=\"n\">" + escaped(report.name) + "</th>";
  body += "</tr>\n";
  for (const ComparedFact& fact : compare_reports(reports)) {
    const bool inner = fact.name.starts_with("  ");
    body += fmt::format("<tr><td{}>{}</td>", inner ? " class=\"soft inner\"" : "", escaped(fact.name));
    for (size_t i = 0; i < fact.cells.size(); ++i)
      body += fmt::format("<td class=\"n{}\">{}{}{}</td>", fact.words ? " words" : "",
                          fact.best[i] ? "<b>" : "", escaped(fact.cells[i]), fact.best[i] ? "</b>" : "");
    body += "</tr>\n";
  }
  body += "</table></section>\n";
  if (different_corpora(reports)) body += fmt::format("<p><b class=\"bad\">{}</b></p>\n", kDifferent);
  RateAxes axes;
  for (const NamedReport& report : reports) axes.include(report.json);
  body += plots_html(reports, "Throughput",
                     [&](const ordered_json& report) { return throughput_html(report, axes); });
  body += plots_html(reports, "Where the time went", stages_html);
  return html_page("sheaf: runs side by side", body);
}

}  // namespace sheaf

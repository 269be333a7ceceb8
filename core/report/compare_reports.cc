#include "core/report/compare_reports.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "core/report/report_fields.h"
#include "core/report/svg_plot.h"
#include "core/text/format.h"
#include "core/text/table.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

using Better = ReportField::Better;

constexpr std::string_view kDifferent =
    "These runs read different corpora or different parts of one, so nothing is marked as best.";

class Comparison {
 public:
  explicit Comparison(const std::vector<NamedReport>& reports)
      : reports_(reports), comparable_(!different_corpora(reports)) {}

  void add(const ReportField& field) {
    facts.push_back(field.kind == ReportField::Kind::text ? text(field) : number(field));
  }

  std::vector<ComparedFact> facts;

 private:
  /// What earlier reports do not have is left empty.
  ComparedFact text(const ReportField& field) const {
    ComparedFact fact{std::string(field.title), {}, std::vector<bool>(reports_.size()), true};
    for (const NamedReport& report : reports_)
      fact.cells.push_back(
          report.json.contains(field.pointer()) ? report.json.at(field.pointer()).get<std::string>() : "-");
    return fact;
  }

  ComparedFact number(const ReportField& field) const {
    ComparedFact fact{std::string(field.title), {}, {}, false};
    size_t best = 0;
    std::vector<double> values;
    for (const NamedReport& report : reports_) {
      values.push_back(field.value(report.json).value_or(0));
      fact.cells.push_back((field.show ? field.show : number_text)(values.back()));
      const size_t i = values.size() - 1;
      if (field.better == Better::more ? values[i] > values[best] : values[i] < values[best]) best = i;
    }
    // Runs that look equal are equal.
    const std::string& winner = fact.cells[best];
    const auto winners = std::count(fact.cells.begin(), fact.cells.end(), winner);
    const bool ranked =
        comparable_ && field.better != Better::neither && winners < static_cast<ptrdiff_t>(values.size());
    for (const std::string& cell : fact.cells) fact.best.push_back(ranked && cell == winner);
    return fact;
  }

  const std::vector<NamedReport>& reports_;
  bool comparable_;
};

std::string plots_html(const std::vector<NamedReport>& reports, const char* title,
                       const std::function<std::string(const ordered_json&)>& plot) {
  std::string out = fmt::format("<h2>{}</h2>\n<div class=\"beside\">\n", title);
  for (const NamedReport& report : reports)
    out += "<section><h2>" + escaped(report.name) + "</h2>\n" + plot(report.json) + "</section>\n";
  return out + "</div>\n";
}

}  // namespace

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

std::vector<ComparedFact> compare_reports(const std::vector<NamedReport>& reports) {
  Comparison c(reports);
  for (const ReportField& field : report_fields())
    if (!field.title.empty()) c.add(field);
  return std::move(c.facts);
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
  for (const NamedReport& report : reports) axes.include(rate_axes(report.json));
  body += plots_html(reports, "Throughput",
                     [&](const ordered_json& report) { return throughput_html(report, axes); });
  body += plots_html(reports, "Where the time went", stages_html);
  return html_page("sheaf: runs side by side", body);
}

}  // namespace sheaf

#include "core/report/compare_reports.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "core/report/svg_plot.h"
#include "core/text/printable.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

enum class Better { none, more, less };

constexpr std::string_view kDifferent =
    "These runs read different corpora or different parts of one, so nothing is marked as best.";

double at(const ordered_json& report, const char* pointer) {
  return report.at(ordered_json::json_pointer(pointer)).get<double>();
}

/// Of all attributes or questions asked for, those that were found.
double found_share(const ordered_json& report) {
  double asked = at(report, "/questions/asked"), found = at(report, "/questions/answered");
  for (const ordered_json& category : report.at("values")) {
    for (const ordered_json& attribute : category.at("attributes")) {
      asked += attribute.at("asked").get<double>();
      found += attribute.at("found").get<double>();
    }
  }
  return asked > 0 ? found / asked : 0;
}

std::string percent_text(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string dollars_text(double usd) {
  return fmt::format("${:.4f}", usd);
}

class Comparison {
 public:
  explicit Comparison(const std::vector<NamedReport>& reports)
      : reports_(reports), comparable_(!different_corpora(reports)) {}

  /// What earlier reports do not have is left empty.
  void text(const char* name, const char* pointer) {
    ComparedFact fact{name, {}, std::vector<bool>(reports_.size()), true};
    const ordered_json::json_pointer place(pointer);
    for (const NamedReport& report : reports_)
      fact.cells.push_back(report.json.contains(place) ? report.json.at(place).get<std::string>() : "-");
    facts.push_back(std::move(fact));
  }

  void number(const char* name, const std::function<double(const ordered_json&)>& value, Better better,
              std::string (*show)(double) = number_text) {
    ComparedFact fact{name, {}, {}, false};
    size_t best = 0;
    std::vector<double> values;
    for (const NamedReport& report : reports_) {
      values.push_back(value(report.json));
      fact.cells.push_back(show(values.back()));
      const size_t i = values.size() - 1;
      if (better == Better::more ? values[i] > values[best] : values[i] < values[best]) best = i;
    }
    // Runs that look equal are equal.
    const std::string& winner = fact.cells[best];
    const auto winners = std::count(fact.cells.begin(), fact.cells.end(), winner);
    const bool ranked =
        comparable_ && better != Better::none && winners < static_cast<ptrdiff_t>(values.size());
    for (const std::string& cell : fact.cells) fact.best.push_back(ranked && cell == winner);
    facts.push_back(std::move(fact));
  }

  void number(const char* name, const char* pointer, Better better,
              std::string (*show)(double) = number_text) {
    number(
        name, [pointer](const ordered_json& report) { return at(report, pointer); }, better, show);
  }

  std::vector<ComparedFact> facts;

 private:
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

/// Characters, counted by the bytes of UTF-8 that begin one.
size_t length_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width) {
  const size_t length = length_of(text);
  return text + std::string(width > length ? width - length : 0, ' ');
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
  c.text("date", "/date");
  c.text("sheaf", "/sheaf");
  c.text("job", "/job");
  c.text("corpus", "/corpus/path");
  c.text("model", "/model");
  c.text("method", "/method");
  c.text("backend", "/backend");
  c.number("rows", "/rows", Better::none);
  c.number("rejects", "/rejects", Better::none);
  c.number("rows a second", "/rows_per_second", Better::more);
  c.number("total time", "/seconds/total", Better::less, time_text);
  for (const char* stage : {"open", "read", "plan", "decode", "write"})
    c.number(fmt::format("  {}", stage).c_str(), fmt::format("/seconds/{}", stage).c_str(), Better::none,
             time_text);
  c.number("stalled", "/stall/share", Better::less, percent_text);
  c.number("tokens computed", "/tokens/computed", Better::less);
  c.number("  saved by sharing", "/tokens/saved", Better::none);
  c.number("steps", "/steps", Better::none);
  c.number("  tokens per step", "/tokens_per_step", Better::none);
  c.number("  answers per step", "/per_step/slots/mean", Better::none);
  c.number("tokens per value", "/value_tokens/mean", Better::none);
  c.number("values found", found_share, Better::none, percent_text);
  c.number("cut answers", "/endings/length", Better::none);
  c.number("keys and values, MB", "/kv_peak_mb", Better::none);
  c.number("cost", "/cost/usd", Better::none, dollars_text);
  c.number("  per 1,000 rows", "/cost/usd_per_1000_rows", Better::less, dollars_text);
  return std::move(c.facts);
}

std::string comparison_text(const std::vector<NamedReport>& reports) {
  std::vector<ComparedFact> facts = compare_reports(reports);
  ComparedFact head{"", {}, std::vector<bool>(reports.size()), true};
  for (const NamedReport& report : reports) head.cells.push_back(report.name);
  facts.insert(facts.begin(), std::move(head));

  size_t name_width = 0;
  std::vector<size_t> widths(reports.size());
  for (ComparedFact& fact : facts) {
    for (std::string& cell : fact.cells) cell = printable_line(cell);
    name_width = std::max(name_width, fact.name.size());
    for (size_t i = 0; i < widths.size(); ++i) {
      if (fact.best[i]) fact.cells[i] += " *";
      widths[i] = std::max(widths[i], length_of(fact.cells[i]));
    }
  }
  std::string out;
  bool starred = false;
  for (const ComparedFact& fact : facts) {
    starred |= std::ranges::count(fact.best, true) > 0;
    std::string line = padded(fact.name, name_width);
    for (size_t i = 0; i < widths.size(); ++i) line += "  " + padded(fact.cells[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
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

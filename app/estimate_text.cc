#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "app/estimate_sweep.h"
#include "core/report_html.h"
#include "core/svg_plot.h"

namespace sheaf {
namespace {

/// A table's cells, the heads first.
using Cells = std::vector<std::vector<std::string>>;

std::string money(double usd) {
  return usd >= 100 ? fmt::format("${:.0f}", usd) : fmt::format("${:.{}f}", usd, usd >= 1 ? 2 : 4);
}

Cells cells(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows) {
  Cells table(1);
  for (const SweepAxis& axis : axes) table[0].push_back(axis.key);
  for (const char* head : {"time", "rows/s", "answers/s", "$ per 1,000 rows", "$ for all"})
    table[0].emplace_back(head);
  for (const SweepRow& row : rows) {
    std::vector<std::string> line = row.values;
    if (row.estimate) {
      const Estimate& each = *row.estimate;
      const bool priced = each.usd_per_hour > 0;
      line.insert(line.end(),
                  {time_text(each.total_seconds()), number_text(each.rows_per_second()),
                   number_text(each.answers_per_second()), priced ? money(each.usd_per_thousand()) : "–",
                   priced ? money(each.usd()) : "–"});
    } else {
      line.insert(line.end(), {"–", "–", "–", "–", "–"});
    }
    table.push_back(std::move(line));
  }
  return table;
}

double fastest(const std::vector<SweepRow>& rows) {
  double most = 0;
  for (const SweepRow& row : rows)
    if (row.estimate) most = std::max(most, row.estimate->rows_per_second());
  return most;
}

/// Characters, not bytes.
size_t width(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string sweep_text(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows) {
  const Cells table = cells(axes, rows);
  std::vector<size_t> widths(table[0].size(), 0);
  for (const auto& line : table)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width(line[i]));
  const double most = fastest(rows);
  std::string text;
  for (size_t r = 0; r < table.size(); ++r) {
    for (size_t i = 0; i < table[r].size(); ++i) {
      const std::string space(widths[i] - width(table[r][i]), ' ');
      text += i < axes.size() ? table[r][i] + space + "  " : space + table[r][i] + "  ";
    }
    if (r > 0) {
      const SweepRow& row = rows[r - 1];
      if (row.estimate)
        text += std::string(
            static_cast<size_t>(std::max(1.0, std::round(20 * row.estimate->rows_per_second() / most))), '#');
      if (!row.mark.empty()) text += " <- " + row.mark;
      if (!row.problem.empty()) text += row.problem;
    }
    while (text.ends_with(' ')) text.pop_back();
    text += '\n';
  }
  return text;
}

std::string sweep_html(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows,
                       const std::vector<std::string>& notes) {
  const Cells table = cells(axes, rows);
  std::string body = "<h1>sheaf estimate</h1>\n";
  for (const std::string& note : notes) body += "<p class=\"soft\">" + escaped(note) + "</p>\n";
  body += "<section><div class=\"scroll\"><table>\n";
  for (size_t r = 0; r < table.size(); ++r) {
    body += "<tr>";
    const char* cell = r == 0 ? "th" : "td";
    for (size_t i = 0; i < table[r].size(); ++i)
      body += fmt::format("<{}{}>{}</{}>", cell, i < axes.size() ? "" : " class=\"n\"", escaped(table[r][i]),
                          cell);
    if (r == 0) {
      body += "<th></th><th></th>";
    } else {
      const SweepRow& row = rows[r - 1];
      body += fmt::format("<td class=\"bar\">{}</td><td class=\"words\">{}</td>",
                          row.estimate ? share_bar(row.estimate->rows_per_second(), fastest(rows)) : "",
                          escaped(row.mark + row.problem));
    }
    body += "</tr>\n";
  }
  body += "</table></div></section>\n";
  if (axes.size() == 1) {
    std::vector<double> speeds;
    for (const SweepRow& row : rows) speeds.push_back(row.estimate ? row.estimate->rows_per_second() : 0);
    body += "<section>" + column_plot("rows a second, in the order of the table", speeds, 1) + "</section>\n";
  }
  return html_page("sheaf estimate", body);
}

nlohmann::ordered_json estimate_json(const Estimate& each) {
  const MemoryPlan& memory = each.memory;
  nlohmann::ordered_json json{{"rows", each.rows},
                              {"answers", each.answers},
                              {"tokens_computed", each.tokens},
                              {"tokens_one_prompt_per_question", each.tokens_alone},
                              {"steps", each.steps},
                              {"rows_per_step", memory.rows_per_step},
                              {"seconds",
                               {{"total", each.total_seconds()},
                                {"open", each.open_seconds},
                                {"work", each.work_seconds},
                                {"prefill", each.prefill_seconds},
                                {"decode", each.decode_seconds},
                                {"pick", each.pick_seconds},
                                {"host", each.host_seconds}}},
                              {"device_seconds",
                               {{"products", each.stages.products},
                                {"attention", each.stages.attention},
                                {"rest", each.stages.rest},
                                {"pick", each.stages.pick}}},
                              {"memory_gb",
                               {{"weights", memory.weights / 1e9},
                                {"step", memory.activations / 1e9},
                                {"kv_pool", memory.pool / 1e9},
                                {"kv_peak", each.kv_peak / 1e9},
                                {"device", memory.room / 1e9}}},
                              {"rows_per_second", each.rows_per_second()},
                              {"answers_per_second", each.answers_per_second()},
                              {"error", each.error}};
  if (each.usd_per_hour > 0)
    json["usd"] = {
        {"per_hour", each.usd_per_hour}, {"per_1000_rows", each.usd_per_thousand()}, {"total", each.usd()}};
  return json;
}

}  // namespace sheaf

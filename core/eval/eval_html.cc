#include <algorithm>
#include <fmt/format.h>

#include "core/eval/table_cells.h"
#include "core/report/report_html.h"
#include "core/report/svg_plot.h"

namespace sheaf {
namespace {

std::string head_row(const std::vector<EvalColumn>& columns) {
  std::string html = "<tr>";
  for (const EvalColumn& column : columns)
    html += fmt::format("<th{}>{}</th>", column.number ? " class=\"n\"" : "", escaped(column.name));
  return html + "<th></th></tr>\n";
}

/// The rows of one model on one dataset are compared with each other.
double largest_throughput(const EvalTable& table, const EvalRow& of) {
  double most = 0;
  for (const EvalRow& row : table.rows)
    if (row.model == of.model && row.dataset == of.dataset)
      most = std::max(most, row.own.throughput.value_or(0));
  return most;
}

}  // namespace

std::string eval_html(const EvalTable& table) {
  const std::vector<EvalColumn> columns = table_columns(table);
  std::string body = "<h1>" + escaped(table.name) + "</h1>\n";
  body += "<section><div class=\"scroll\"><table>\n" + head_row(columns);
  for (size_t r = 0; r < table.rows.size(); ++r) {
    body += "<tr>";
    for (const EvalColumn& column : columns)
      body += fmt::format("<td{}>{}</td>",
                          column.paper    ? " class=\"n soft\""
                          : column.number ? " class=\"n\""
                                          : "",
                          escaped(column.cells[r]));
    body += "<td class=\"bar\" style=\"padding-left: .8rem\">" +
            share_bar(table.rows[r].own.throughput.value_or(0), largest_throughput(table, table.rows[r])) +
            "</td></tr>\n";
  }
  body += "</table></div>\n";
  body +=
      "<p class=\"soft\">The bars show throughput relative to the fastest method of each model and "
      "dataset.</p>\n";
  for (const std::string& note : table.notes) body += "<p class=\"soft\">" + escaped(note) + "</p>\n";
  body += "</section>\n";
  if (table.differences)
    body += "<p class=\"soft\"><a href=\"differences.html\">Where the methods differ</a></p>\n";
  return html_page(table.name, body);
}

}  // namespace sheaf

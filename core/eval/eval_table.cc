#include "core/eval/eval_table.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "core/report/report_html.h"
#include "core/report/svg_plot.h"
#include "core/text/format.h"
#include "core/text/printable.h"
#include "core/text/table.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

/// Scores of all metrics stand on one scale, from 0 to 100.
double quality_scale(const EvalRow& row) {
  return 100 / row.best;
}

template <int Digits>
std::string fixed(const EvalRow&, double value) {
  return fmt::format("{:.{}f}", value, Digits);
}

using F = EvalFigures;
constexpr EvalFigure kFigures[] = {
    {"throughput", "throughput", &F::throughput,
     [](const EvalRow& row, double value) {
       return fmt::format("{} {}/s", number_text(value), row.unit == "questions" ? "q" : row.unit);
     }},
    {"seconds", "seconds", &F::seconds, [](const EvalRow&, double value) { return number_text(value); }},
    {"quality", "quality", &F::quality,
     [](const EvalRow& row, double value) { return fmt::format("{} {:.2f}", row.value, value); }},
    {"llm_f1", "LLM-F1", &F::llm_f1, fixed<2>},
    {"exact_match_percent", "EM %", &F::exact_match_percent, fixed<1>},
    {"speedup", "speed-up", &F::speedup,
     [](const EvalRow& row, double value) { return fixed<2>(row, value) + "x"; }},
    {"usd_per_1k", "$/1k", &F::usd_per_1k,
     [](const EvalRow& row, double value) {
       return value < 0.001 ? fmt::format("{:.2e}", value) : fixed<4>(row, value);
     }},
    {"memory_gb", "GB", &F::memory_gb, fixed<2>},
};

double scale_of(const EvalFigure& each, const EvalRow& row) {
  return each.figure == &F::quality ? quality_scale(row) : each.figure == &F::llm_f1 ? 100 : 1;
}

/// A column of the table as people read it.
struct Column {
  std::string name;
  bool number = true;              ///< stands to the right
  bool paper = false;              ///< the paper's figures of the column before
  std::vector<std::string> cells;  ///< one a row; empty where there is nothing to say
};

class Columns {
 public:
  explicit Columns(const EvalTable& table) : table_(table) {}

  void text(const std::string& name, std::string EvalRow::*field) {
    Column column{name, false, false, {}};
    for (const EvalRow& row : table_.rows) column.cells.push_back(row.*field);
    columns.push_back(std::move(column));
  }

  /// Ours, and the paper's where it has some.
  void figure(const EvalFigure& each) {
    const size_t before = columns.size();
    add(each.title, false, [&](const EvalRow& row) {
      const auto& figure = row.own.*each.figure;
      return figure ? each.show(row, *figure * scale_of(each, row)) : "";
    });
    const bool alone = columns.size() == before;
    // With the paper's digits, not ours.
    add(each.title, true, [&](const EvalRow& row) -> std::string {
      if (!(row.paper.*each.figure)) return "";
      const auto digits = row.paper_digits.find(each.name);
      const double value = *(row.paper.*each.figure) * scale_of(each, row);
      const int moved = scale_of(each, row) > 1 ? 2 : 0;  // digits that came before the point
      return digits == row.paper_digits.end()
                 ? fmt::format("{:.6g}", value)
                 : fmt::format("{:.{}f}", value, std::max(0, digits->second - moved));
    });
    if (alone && columns.size() > before) columns.back().name = fmt::format("paper's {}", each.title);
  }

  void add(const std::string& name, bool paper, const std::function<std::string(const EvalRow&)>& cell) {
    Column column{paper ? "paper" : name, true, paper, {}};
    for (const EvalRow& row : table_.rows) column.cells.push_back(cell(row));
    if (std::ranges::any_of(column.cells, [](const auto& text) { return !text.empty(); }))
      columns.push_back(std::move(column));
  }

  std::vector<Column> columns;

 private:
  const EvalTable& table_;
};

/// The columns that have something in them, with the paper's figures beside ours.
std::vector<Column> table_columns(const EvalTable& table) {
  const auto has_seconds = [](const EvalRow& row) { return row.paper.seconds.has_value(); };
  Columns columns(table);
  columns.text("model", &EvalRow::model);
  columns.text("dataset", &EvalRow::dataset);
  columns.text("method", &EvalRow::method);
  columns.add("n", false, [](const EvalRow& row) { return fmt::format("{}", row.count); });
  for (const EvalFigure& each : kFigures) {
    if (each.figure == &F::seconds && std::ranges::none_of(table.rows, has_seconds)) continue;
    columns.figure(each);
    if (each.figure == &F::throughput)
      columns.add("predicted", false,
                  [](const EvalRow& row) { return row.predicted ? number_text(*row.predicted) : ""; });
    if (each.figure != &F::quality) continue;
    columns.add("95 %", false, [](const EvalRow& row) {
      const double scale = quality_scale(row);
      return row.interval
                 ? fmt::format("{:.2f}-{:.2f}", row.interval->low * scale, row.interval->high * scale)
                 : "";
    });
    columns.add("p", false,
                [](const EvalRow& row) { return row.p_value ? fmt::format("{:.3f}", *row.p_value) : ""; });
  }
  return std::move(columns.columns);
}

ordered_json figures_json(const EvalFigures& figures) {
  ordered_json json = ordered_json::object();
  for (const EvalFigure& each : kFigures)
    if (const auto& value = figures.*each.figure) json[each.name] = *value;
  return json;
}

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

TextTable text_table(const EvalTable& table) {
  TextTable out;
  out.rows.resize(1 + table.rows.size());
  for (const Column& column : table_columns(table)) {
    out.right.push_back(column.number);
    out.rows[0].push_back(column.name);
    for (size_t r = 0; r < table.rows.size(); ++r) out.rows[r + 1].push_back(column.cells[r]);
  }
  return out;
}

std::string head_row(const std::vector<Column>& columns) {
  std::string html = "<tr>";
  for (const Column& column : columns)
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

std::span<const EvalFigure> eval_figures() {
  return kFigures;
}

void set_rates(EvalTable& table) {
  const bool alone =
      std::ranges::all_of(table.rows, [&](const EvalRow& row) { return row.method == table.baseline; });
  for (EvalRow& row : table.rows) {
    if (!row.own.throughput || *row.own.throughput <= 0) continue;
    if (row.usd_per_hour > 0) row.own.usd_per_1k = row.usd_per_hour / 3600 / *row.own.throughput * 1000;
    if (alone) continue;
    for (const EvalRow& base : table.rows)
      if (base.model == row.model && base.dataset == row.dataset && base.method == table.baseline &&
          base.own.throughput && *base.own.throughput > 0)
        row.own.speedup = *row.own.throughput / *base.own.throughput;
  }
}

std::string eval_text(const EvalTable& table) {
  std::string text = text_table(table).text();
  for (const std::string& note : table.notes) text += printable_line(note) + "\n";
  return text;
}

std::string eval_markdown(const EvalTable& table) {
  std::string text = fmt::format("# {}\n\n{}", markdown_text(table.name), text_table(table).markdown());
  for (const std::string& note : table.notes) text += "\n" + markdown_text(note) + "\n";
  return text;
}

std::string eval_csv(const EvalTable& table) {
  std::string text = "model,dataset,method,unit,count,rejects,missing,metric,value";
  for (const EvalFigure& each : kFigures) text += fmt::format(",{}", each.name);
  text += ",quality_low,quality_high,p_value,predicted_throughput";
  for (const EvalFigure& each : kFigures) text += fmt::format(",paper_{}", each.name);
  text += "\r\n";
  for (const EvalRow& row : table.rows) {
    text += fmt::format("{},{},{},{},{},{},{},{},{}", csv_field(row.model), csv_field(row.dataset),
                        csv_field(row.method), row.unit, row.count, row.rejects, row.missing,
                        csv_field(row.metric), csv_field(row.value));
    for (const EvalFigure& each : kFigures) text += "," + csv_number(row.own.*each.figure);
    text += row.interval ? fmt::format(",{},{}", row.interval->low, row.interval->high) : ",,";
    text += "," + csv_number(row.p_value) + "," + csv_number(row.predicted);
    for (const EvalFigure& each : kFigures) text += "," + csv_number(row.paper.*each.figure);
    text += "\r\n";
  }
  return text;
}

ordered_json eval_json(const EvalTable& table) {
  ordered_json json{{"name", table.name}, {"baseline", table.baseline}};
  if (!table.paper.empty()) json["paper"] = table.paper;
  json["notes"] = table.notes;
  json["rows"] = ordered_json::array();
  for (const EvalRow& row : table.rows) {
    ordered_json line{{"model", row.model},    {"dataset", row.dataset}, {"method", row.method},
                      {"unit", row.unit},      {"count", row.count},     {"rejects", row.rejects},
                      {"missing", row.missing}};
    if (!row.metric.empty()) {
      line["metric"] = row.metric;
      line["value"] = row.value;
    }
    line.update(figures_json(row.own));
    if (row.predicted) line["predicted_throughput"] = *row.predicted;
    if (row.interval) line["quality_interval"] = {row.interval->low, row.interval->high};
    if (row.p_value) line["p_value"] = *row.p_value;
    if (ordered_json paper = figures_json(row.paper); !paper.empty()) line["paper"] = std::move(paper);
    json["rows"].push_back(std::move(line));
  }
  return json;
}

std::string eval_html(const EvalTable& table) {
  const std::vector<Column> columns = table_columns(table);
  std::string body = "<h1>" + escaped(table.name) + "</h1>\n";
  body += "<section><div class=\"scroll\"><table>\n" + head_row(columns);
  for (size_t r = 0; r < table.rows.size(); ++r) {
    body += "<tr>";
    for (const Column& column : columns)
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

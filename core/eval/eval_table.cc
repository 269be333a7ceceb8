#include "core/eval/eval_table.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/eval/table_cells.h"
#include "core/text/printable.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

struct NamedFigure {
  const char* name;
  std::optional<double> EvalFigures::*figure;
};
constexpr NamedFigure kFigures[] = {{"throughput", &EvalFigures::throughput},
                                    {"seconds", &EvalFigures::seconds},
                                    {"quality", &EvalFigures::quality},
                                    {"llm_f1", &EvalFigures::llm_f1},
                                    {"exact_match_percent", &EvalFigures::exact_match_percent},
                                    {"speedup", &EvalFigures::speedup},
                                    {"usd_per_1k", &EvalFigures::usd_per_1k},
                                    {"memory_gb", &EvalFigures::memory_gb}};

ordered_json figures_json(const EvalFigures& figures) {
  ordered_json json = ordered_json::object();
  for (const NamedFigure& each : kFigures)
    if (const auto& value = figures.*each.figure) json[each.name] = *value;
  return json;
}

/// How wide a text is on the terminal: characters, not bytes.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(),
                                           [](char c) { return (static_cast<uint8_t>(c) & 0xC0U) != 0x80; }));
}

std::string padded(const std::string& text, size_t width, bool right) {
  const std::string blanks(width - std::min(width, width_of(text)), ' ');
  return right ? blanks + text : text + blanks;
}

std::string csv_field(std::string text) {
  // A spreadsheet would compute what begins so.
  if (text.find_first_of("=+-@\t\r") == 0) text.insert(0, "'");
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

/// Text in a line of Markdown: no cell, tag, link or code of its own.
std::string markdown(const std::string& text) {
  std::string out;
  for (const char c : printable_line(text)) {
    if (std::string_view("\\|<[`").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

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
  std::vector<EvalColumn> columns = table_columns(table);
  std::vector<size_t> widths;
  for (EvalColumn& column : columns) {
    widths.push_back(width_of(column.name));
    for (std::string& cell : column.cells) {
      cell = printable_line(cell);
      widths.back() = std::max(widths.back(), width_of(cell));
    }
  }
  const auto line = [&](const auto& cell) {
    std::string text;
    for (size_t c = 0; c < columns.size(); ++c)
      text += (c == 0 ? "" : "  ") + padded(cell(columns[c]), widths[c], columns[c].number);
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text = line([](const EvalColumn& column) { return column.name; });
  for (size_t r = 0; r < table.rows.size(); ++r)
    text += line([&](const EvalColumn& column) { return column.cells[r]; });
  for (const std::string& note : table.notes) text += printable_line(note) + "\n";
  return text;
}

std::string eval_markdown(const EvalTable& table) {
  const std::vector<EvalColumn> columns = table_columns(table);
  std::string text = fmt::format("# {}\n\n|", markdown(table.name)), rule = "|";
  for (const EvalColumn& column : columns) {
    text += " " + column.name + " |";
    rule += column.number ? "---:|" : "---|";
  }
  text += "\n" + rule + "\n";
  for (size_t r = 0; r < table.rows.size(); ++r) {
    text += "|";
    for (const EvalColumn& column : columns) text += " " + markdown(column.cells[r]) + " |";
    text += "\n";
  }
  for (const std::string& note : table.notes) text += "\n" + markdown(note) + "\n";
  return text;
}

std::string eval_csv(const EvalTable& table) {
  std::string text = "model,dataset,method,unit,count,rejects,missing,metric,value";
  for (const NamedFigure& each : kFigures) text += fmt::format(",{}", each.name);
  text += ",quality_low,quality_high,p_value,predicted_throughput";
  for (const NamedFigure& each : kFigures) text += fmt::format(",paper_{}", each.name);
  text += "\r\n";
  for (const EvalRow& row : table.rows) {
    text += fmt::format("{},{},{},{},{},{},{},{},{}", csv_field(row.model), csv_field(row.dataset),
                        csv_field(row.method), row.unit, row.count, row.rejects, row.missing,
                        csv_field(row.metric), csv_field(row.value));
    for (const NamedFigure& each : kFigures) text += "," + csv_number(row.own.*each.figure);
    text += row.interval ? fmt::format(",{},{}", row.interval->low, row.interval->high) : ",,";
    text += "," + csv_number(row.p_value) + "," + csv_number(row.predicted);
    for (const NamedFigure& each : kFigures) text += "," + csv_number(row.paper.*each.figure);
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

}  // namespace sheaf

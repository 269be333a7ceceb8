#include "core/eval/eval_table.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/eval/table_cells.h"
#include "core/text/printable.h"
#include "core/text/table.h"

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

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

TextTable text_table(const EvalTable& table) {
  TextTable out;
  out.rows.resize(1 + table.rows.size());
  for (const EvalColumn& column : table_columns(table)) {
    out.right.push_back(column.number);
    out.rows[0].push_back(column.name);
    for (size_t r = 0; r < table.rows.size(); ++r) out.rows[r + 1].push_back(column.cells[r]);
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

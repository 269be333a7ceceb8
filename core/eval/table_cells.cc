#include "core/eval/table_cells.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "core/text/format.h"

namespace sheaf {
namespace {

using Figure = std::optional<double> EvalFigures::*;
using Show = std::function<std::string(const EvalRow&, double)>;

/// Scores of all metrics stand on one scale, from 0 to 100.
double quality_scale(const EvalRow& row) {
  return 100 / row.best;
}

double no_scale(const EvalRow&) {
  return 1;
}

class Columns {
 public:
  explicit Columns(const EvalTable& table) : table_(table) {}

  void text(const std::string& name, std::string EvalRow::*field) {
    EvalColumn column{name, false, false, {}};
    for (const EvalRow& row : table_.rows) column.cells.push_back(row.*field);
    columns.push_back(std::move(column));
  }

  /// Ours, and the paper's where it has some.
  void figure(const std::string& name, const char* key, Figure figure, const Show& show,
              double (*scale)(const EvalRow&) = no_scale) {
    const size_t before = columns.size();
    add(name, false, [&](const EvalRow& row) {
      return row.own.*figure ? show(row, *(row.own.*figure) * scale(row)) : "";
    });
    const bool alone = columns.size() == before;
    // With the paper's digits, not ours.
    add(name, true, [&](const EvalRow& row) -> std::string {
      if (!(row.paper.*figure)) return "";
      const auto digits = row.paper_digits.find(key);
      const double value = *(row.paper.*figure) * scale(row);
      const int moved = scale(row) > 1 ? 2 : 0;  // digits that came before the point
      return digits == row.paper_digits.end()
                 ? fmt::format("{:.6g}", value)
                 : fmt::format("{:.{}f}", value, std::max(0, digits->second - moved));
    });
    if (alone && columns.size() > before) columns.back().name = "paper's " + name;
  }

  void add(const std::string& name, bool paper, const std::function<std::string(const EvalRow&)>& cell) {
    EvalColumn column{paper ? "paper" : name, true, paper, {}};
    for (const EvalRow& row : table_.rows) column.cells.push_back(cell(row));
    if (std::any_of(column.cells.begin(), column.cells.end(), [](const auto& text) { return !text.empty(); }))
      columns.push_back(std::move(column));
  }

  std::vector<EvalColumn> columns;

 private:
  const EvalTable& table_;
};

}  // namespace

std::vector<EvalColumn> table_columns(const EvalTable& table) {
  const auto has_seconds = [](const EvalRow& row) { return row.paper.seconds.has_value(); };
  Columns columns(table);
  columns.text("model", &EvalRow::model);
  columns.text("dataset", &EvalRow::dataset);
  columns.text("method", &EvalRow::method);
  columns.add("n", false, [](const EvalRow& row) { return fmt::format("{}", row.count); });
  columns.figure("throughput", "throughput", &EvalFigures::throughput, [](const EvalRow& row, double value) {
    return fmt::format("{} {}/s", number_text(value), row.unit == "questions" ? "q" : row.unit);
  });
  columns.add("predicted", false,
              [](const EvalRow& row) { return row.predicted ? number_text(*row.predicted) : ""; });
  if (std::any_of(table.rows.begin(), table.rows.end(), has_seconds))
    columns.figure("seconds", "seconds", &EvalFigures::seconds,
                   [](const EvalRow&, double value) { return number_text(value); });
  columns.figure(
      "quality", "quality", &EvalFigures::quality,
      [](const EvalRow& row, double value) { return fmt::format("{} {:.2f}", row.value, value); },
      quality_scale);
  columns.add("95 %", false, [](const EvalRow& row) {
    const double scale = quality_scale(row);
    return row.interval ? fmt::format("{:.2f}-{:.2f}", row.interval->low * scale, row.interval->high * scale)
                        : "";
  });
  columns.add("p", false,
              [](const EvalRow& row) { return row.p_value ? fmt::format("{:.3f}", *row.p_value) : ""; });
  columns.figure(
      "LLM-F1", "llm_f1", &EvalFigures::llm_f1,
      [](const EvalRow&, double value) { return fmt::format("{:.2f}", value); },
      [](const EvalRow&) { return 100.0; });
  columns.figure("EM %", "exact_match_percent", &EvalFigures::exact_match_percent,
                 [](const EvalRow&, double value) { return fmt::format("{:.1f}", value); });
  columns.figure("speed-up", "speedup", &EvalFigures::speedup,
                 [](const EvalRow&, double value) { return fmt::format("{:.2f}x", value); });
  columns.figure("$/1k", "usd_per_1k", &EvalFigures::usd_per_1k, [](const EvalRow&, double value) {
    return value < 0.001 ? fmt::format("{:.2e}", value) : fmt::format("{:.4f}", value);
  });
  columns.figure("GB", "memory_gb", &EvalFigures::memory_gb,
                 [](const EvalRow&, double value) { return fmt::format("{:.2f}", value); });
  return std::move(columns.columns);
}

}  // namespace sheaf

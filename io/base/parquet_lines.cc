#include "io/base/parquet_lines.h"

#include <nlohmann/json.hpp>

#include "core/text/json_reader.h"
#include "io/base/table_cells.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

/// Appends a JSON value as what the builder wants; what cannot be that is null, text takes anything.
void append_value(arrow::ArrayBuilder& cell, const ordered_json& value) {
  switch (cell.type()->id()) {
    case arrow::Type::STRING:
      if (value.is_null()) return append_null(cell);
      return append_text(cell, value.is_string() ? value.get<std::string>() : value.dump());
    case arrow::Type::INT64:
      if (!value.is_number_integer()) return append_null(cell);
      return append_integer(cell, value.get<int64_t>());
    case arrow::Type::DOUBLE:
      if (!value.is_number()) return append_null(cell);
      return append_number(cell, value.get<double>());
    case arrow::Type::LIST: {
      if (!value.is_array()) return append_null(cell);
      arrow::ArrayBuilder& entries = append_list(cell);
      for (const ordered_json& entry : value) append_value(entries, entry);
      return;
    }
    case arrow::Type::MAP: {
      if (!value.is_object()) return append_null(cell);
      arrow::MapBuilder& map = append_map(cell);
      for (const auto& [key, part] : value.items()) {
        append_text(*map.key_builder(), key);
        append_value(*map.item_builder(), part);
      }
      return;
    }
    case arrow::Type::STRUCT: {
      arrow::StructBuilder& record = append_struct(cell);
      for (int i = 0; i < record.num_fields(); ++i) {
        const auto at = value.find(record.type()->field(i)->name());
        append_value(*record.field_builder(i), at == value.end() ? ordered_json() : *at);
      }
      return;
    }
    default:
      fail("a column has a type that tables do not support");
  }
}

}  // namespace

void write_parquet_lines(const std::string& lines, const std::vector<TableColumn>& columns,
                         OutputFile& target) {
  TableWriter table(TableFormat::parquet, columns, target);
  read_lines(lines, [&](const std::string& line) {
    std::string trouble;
    const ordered_json row = read_json<ordered_json>(line, {}, &trouble);
    if (!trouble.empty()) fail("{}: a line is {}", lines, trouble);
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto at = row.find(columns[i].name);
      append_value(table.cell(i), at == row.end() ? ordered_json() : *at);
    }
    table.end_row(static_cast<int64_t>(line.size()));
  });
  table.close();
}

}  // namespace sheaf

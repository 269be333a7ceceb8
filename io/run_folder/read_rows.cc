#include "io/run_folder/read_rows.h"

#include <cmath>

#include "core/base/error.h"
#include "core/task/value_path.h"
#include "core/text/json_reader.h"
#include "core/text/printable.h"
#include "io/base/file_layer.h"
#include "io/base/table_file.h"
#include "io/run_folder/row_line.h"

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// A number of a table is a double; the row had 20 for 20.0.
json whole_number(const json& cell) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (!cell.is_number_float()) return cell;
  const auto number = cell.get<double>();
  return std::trunc(number) == number && std::abs(number) < kExact ? json(static_cast<int64_t>(number))
                                                                   : cell;
}

/// A value of a table as the row had it, the keys of objects in the schema's order.
ordered_json row_value(const Attribute& attribute, const json& cell) {
  if (attribute.type == ValueType::entries && cell.is_array()) {
    Attribute entry = attribute;
    entry.type = ValueType::object;
    ordered_json entries = ordered_json::array();
    for (const json& each : cell) entries.push_back(row_value(entry, each));
    return entries;
  }
  if (attribute.type != ValueType::object || !cell.is_object()) return whole_number(cell);
  ordered_json object = ordered_json::object();
  for (const Attribute& field : attribute.fields)
    object[field.name] = row_value(field, cell.value(field.name, json()));
  return object;
}

/// The value that a path leads to; null where there is none.
ordered_json value_at(const ordered_json& values, const std::string& path) {
  if (values.contains(path)) return values[path];
  const ordered_json* at = &values;
  for (const PathStep& step : read_path(path).value_or(ValuePath())) {
    const auto key = at->is_object() ? at->find(step.name) : at->end();
    if (key == at->end()) return nullptr;
    at = &*key;
    if (!step.entry) continue;
    if (!at->is_array() || static_cast<size_t>(*step.entry) >= at->size()) return nullptr;
    at = &(*at)[static_cast<size_t>(*step.entry)];
  }
  return *at;
}

/// A table has a null for what was not said and a list of spans for every answer, a line neither.
void tidy_answer(ordered_json& answer) {
  if (const auto spans = answer.find("spans"); spans != answer.end() && spans->is_array())
    *spans = spans->empty() ? ordered_json() : ordered_json(spans->front());
  for (auto key = answer.begin(); key != answer.end();)
    key = key->is_null() && key.key() != "answer" && key.key() != "spans" && key.key() != "id"
              ? answer.erase(key)
              : std::next(key);
}

/// The line that JSON lines would have in place of a row of a table.
std::string line_of(json cells, const Schema& schema) {
  if (schema.categories.empty()) {
    ordered_json line = cells;
    if (line.contains("answers") && line["answers"].is_array())
      for (ordered_json& answer : line["answers"]) tidy_answer(answer);
    tidy_answer(line);
    return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  }
  const json category = cells.value("category", json());
  const Category* const known =
      category.is_string() ? schema.find(category.get_ref<const std::string&>()) : nullptr;
  if (!known) return {};
  ordered_json line = ordered_json::object();
  ordered_json values = ordered_json::object();
  for (const Attribute& attribute : known->attributes)
    values[attribute.name] = row_value(attribute, cells.value(attribute.name, json()));
  for (const Category& other : schema.categories)
    for (const Attribute& attribute : other.attributes) cells.erase(attribute.name);
  for (const auto& [name, cell] : cells.items())
    if (!cell.is_null()) line[name] = cell;
  // A table has a list of spans for every value, a line only for lists.
  if (const auto spans = line.find("spans"); spans != line.end() && spans->is_object())
    for (auto& [name, list] : spans->items())
      if (list.is_array() && !value_at(values, name).is_array())
        list = list.empty() ? ordered_json() : ordered_json(list[0]);
  line["values"] = std::move(values);
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

class RowsReader {
 public:
  RowsReader(const Schema& schema, const std::function<void(Row&&)>& take) : schema_(schema), take_(take) {}

  void read_json_lines(const std::string& path, int64_t rows) {
    int64_t number = 0;
    read_lines(path, [&](const std::string& line) {
      if (++number <= rows) take(line, fmt::format("{}:{}", path, number));
    });
  }

  void read_table(const std::string& path) {
    TableFile file(path);
    file.read_decimals_as_numbers();
    std::vector<std::string> columns;
    for (const TableFile::Column& column : file.columns()) columns.push_back(column.name);
    file.select(columns);
    while (const auto batch = file.next()) {
      if (!batch->error.empty()) refuse("{}: row {}: {}; {}", path, batch->first_row, batch->error, kRestart);
      int64_t number = batch->first_row;
      for (const json& cells : batch->cells)
        take(line_of(cells, schema_), fmt::format("{}: row {}", path, number++));
    }
  }

 private:
  void take(const std::string& line, const std::string& place) {
    std::optional<Row> row = read_row(line);
    if (!row || std::holds_alternative<ExtractedValues>(row->content) == schema_.categories.empty())
      refuse("{}: sheaf did not write this row; {}", place, kRestart);
    take_(std::move(*row));
  }

  const Schema& schema_;
  const std::function<void(Row&&)>& take_;
};

/// The numbers of the files by the names that the fingerprint has.
std::unordered_map<std::string, size_t> numbers_then(const Manifest& manifest) {
  std::unordered_map<std::string, size_t> numbers;
  const auto corpus = manifest.fingerprint.find("corpus");
  if (corpus == manifest.fingerprint.end()) return numbers;
  for (const auto& [name, about] : corpus->items()) numbers.emplace(name, numbers.size());
  return numbers;
}

}  // namespace

void read_rows(const std::string& folder, const Manifest& manifest, const Schema& schema,
               const std::function<void(Row&&)>& take) {
  RowsReader reader(schema, take);
  for (const PublishedFile& file : manifest.files) {
    if (!file.name.starts_with("rows-")) continue;
    const std::string path = folder + "/" + file.name;
    check_bytes(path, file);
    file.name.find(".jsonl") != std::string::npos ? reader.read_json_lines(path, file.rows)
                                                  : reader.read_table(path);
  }
}

RejectedRecords::RejectedRecords(const std::string& folder, const Manifest& manifest,
                                 const std::vector<std::string>& files) {
  for (const std::string& file : files) numbers_.emplace(file, numbers_.size());
  const auto then = numbers_then(manifest);
  const PublishedFile& rejects = manifest.files.back();
  const std::string path = folder + "/" + rejects.name;
  if (rejects.rows == 0 && rejects.name.ends_with(".part")) return;
  check_bytes(path, rejects);
  int64_t line = 0, records = 0;
  read_lines(path, [&](const std::string& text) {
    if (records >= rejects.rows) return;
    ++line;
    const auto reject = read_json(text);
    const auto file = reject.is_object() ? reject.value("file", json()) : json();
    const auto row = reject.is_object() ? reject.value("row", json()) : json();
    const auto number =
        file.is_string() ? then.find(printable_line(file.get_ref<const std::string&>())) : then.end();
    if (number == then.end() || !row.is_number_integer())
      refuse("{}:{}: the run's corpus has no record at the place that this line names; {}", path, line,
             kRestart);
    places_.emplace(number->second, row.get<int64_t>());
    // A line may stand for several records, which a corpus passes over together too.
    const auto several = reject.find("records");
    records += several != reject.end() && several->is_number_integer() ? several->get<int64_t>() : 1;
  });
}

bool RejectedRecords::has(const Place& place) const {
  const auto file = numbers_.find(place.file);
  return file != numbers_.end() && places_.contains({file->second, place.row});
}

}  // namespace sheaf

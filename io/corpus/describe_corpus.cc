#include "io/corpus/describe_corpus.h"

#include <algorithm>

#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/base/csv_reader.h"
#include "io/base/file_layer.h"
#include "io/base/foreign_files.h"
#include "io/base/line_reader.h"
#include "io/base/table_file.h"
#include "io/corpus/column_facts.h"
#include "io/corpus/corpus.h"
#include "io/corpus/corpus_formats.h"
#include "io/datasets/readers.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr size_t kShownText = 120;
constexpr size_t kShownRecords = 3;
constexpr int kShownDepth = 4;
constexpr size_t kSampledRecords = 1000;
constexpr size_t kSampledBytes = 32 << 20;
constexpr size_t kMostColumns = 1000;

/// `value` with long texts and lists cut, and what is not UTF-8 left out.
ordered_json shortened(const json& value, int depth = 0) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return shorten_text(std::string_view(text).substr(0, valid_prefix(text)), kShownText);
  }
  if (!value.is_structured()) return value;
  if (depth >= kShownDepth) return "…";
  ordered_json cut = value.is_array() ? ordered_json::array() : ordered_json::object();
  if (value.is_object()) {
    auto& members = cut.get_ref<ordered_json::object_t&>();
    for (const auto& [key, entry] : value.items()) {
      if (members.size() == kMostColumns) break;
      members.emplace_back(shorten_text(key, kShownText), shortened(entry, depth + 1));
    }
    return cut;
  }
  for (size_t i = 0; i < std::min(value.size(), kShownRecords); ++i)
    cut.push_back(shortened(value[i], depth + 1));
  if (value.size() > kShownRecords) cut.push_back(fmt::format("… {} more", value.size() - kShownRecords));
  return cut;
}

std::string type_name(const json& value) {
  if (value.is_array()) return value.empty() ? "list" : "list of " + type_name(value.front());
  return value.is_string()    ? "text"
         : value.is_number()  ? "number"
         : value.is_boolean() ? "boolean"
         : value.is_object()  ? "object"
                              : "null";
}

/// Adds the columns of a row that were not seen before; null tells nothing of a type and is replaced by what
/// does.
void add_columns(const json& row, ordered_json& columns) {
  size_t looked_at = 0;
  for (const auto& [key, value] : row.items()) {
    if (++looked_at > kMostColumns) break;
    const auto known = std::find_if(columns.begin(), columns.end(),
                                    [&name = key](const auto& c) { return c["name"] == name; });
    if (known == columns.end()) {
      if (columns.size() < kMostColumns) columns.push_back({{"name", key}, {"type", type_name(value)}});
    } else if ((*known)["type"] == "null") {
      (*known)["type"] = type_name(value);
    }
  }
}

/// Counts a record that `sheaf run` will reject.
void add_unreadable(ordered_json& about, const std::string& path, int64_t line, const std::string& reason) {
  ordered_json& unreadable = about["unreadable"];
  if (unreadable.is_null()) {
    std::string first = fmt::format("{}:{}: {}", path, line, reason);
    if (reason.starts_with("not valid UTF-8"))
      first += "; if the file is Windows-1252, " + convert_text(path, "WINDOWS-1252");
    unreadable = {{"records", 0}, {"first", std::move(first)}};
  }
  unreadable["records"] = unreadable["records"].get<int64_t>() + 1;
}

/// The first records, of which the rest of the description is made.
struct FirstRecords {
  std::vector<json> records;
  size_t bytes = 0;

  bool full() const { return records.size() == kSampledRecords || bytes >= kSampledBytes; }
  void add(json record) {
    bytes += record.dump(-1, ' ', false, json::error_handler_t::replace).size();
    records.push_back(std::move(record));
  }
};

int64_t describe_parquet(const std::vector<std::string>& files, ordered_json& about, FirstRecords& first) {
  int64_t rows = 0;
  for (const std::string& path : files) {
    TableFile file(path);
    rows += file.rows();
    if (!about["columns"].empty()) continue;
    std::vector<std::string> names;
    for (const TableFile::Column& column : file.columns()) {
      about["columns"].push_back({{"name", column.name}, {"type", column.type}});
      names.push_back(column.name);
    }
    file.select(names);
    while (!first.full()) {
      auto batch = file.next();
      if (!batch) break;
      for (json& row : batch->cells) first.add(std::move(row));
    }
  }
  return rows;
}

int64_t describe_jsonl(const std::vector<std::string>& files, ordered_json& about, FirstRecords& first) {
  int64_t rows = 0;
  for (const std::string& path : files) {
    LineReader reader(path);
    while (const auto line = reader.next_record()) {
      if (!line->damage.empty()) {
        about["damage"] = fmt::format("{}:{}: {}", path, line->number, line->damage);
        continue;
      }
      ++rows;
      if (line->too_long || first.full()) continue;
      try {
        first.add(parse_json_line(line->text));
        add_columns(first.records.back(), about["columns"]);
      } catch (const BadText& bad) {
        add_unreadable(about, path, line->number, bad.reason);
      }
    }
  }
  return rows;
}

/// Numbers where all of its cells are.
std::string csv_type(const std::string& column, const std::vector<json>& records) {
  std::string type = "null";
  for (const json& record : records) {
    const json& value = record.at(column);
    if (value.is_null()) continue;
    const bool number = value.is_string() && is_written_number(value.get_ref<const std::string&>());
    const std::string found = number ? "number" : type_name(value);
    if (type != "null" && found != type) return "text";
    type = found;
  }
  return type;
}

int64_t describe_csv(const std::vector<std::string>& files, ordered_json& about, FirstRecords& first) {
  int64_t rows = 0;
  for (const std::string& path : files) {
    CsvReader reader(path);
    const std::vector<std::string>& header = reader.columns();
    while (const auto row = reader.next()) {
      if (row->damaged) {
        about["damage"] = fmt::format("{}:{}: {}", path, row->line, row->error);
        continue;
      }
      ++rows;
      if (!row->error.empty()) add_unreadable(about, path, row->line, row->error);
      if (!row->error.empty() || first.full() || (about.contains("header") && about["header"] != header))
        continue;
      about["header"] = header;
      json record = json::object();
      for (size_t i = 0; i < header.size(); ++i) record[header[i]] = csv_cell(reader.field(i));
      first.add(std::move(record));
    }
    if (about["columns"].empty())
      for (const std::string& name : header) about["columns"].push_back({{"name", name}, {"type", "null"}});
  }
  for (auto& column : about["columns"]) column["type"] = csv_type(column["name"], first.records);
  about.erase("header");
  return rows;
}

}  // namespace

bool begins_like_records(std::string_view beginning) {
  const size_t first = beginning.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  if (beginning[first] != '{') return beginning[first] == '[';
  const size_t end = beginning.find('\n', first);
  if (end == std::string_view::npos || beginning.find_first_not_of(" \t\r\n", end) == std::string_view::npos)
    return false;
  const auto none = [](const std::string&) { return false; };
  return read_json(beginning.substr(first, end - first), {.keep = none}).is_object();
}

std::string wanted_format(const std::string& path) {
  if (!path.ends_with(".json")) return "auto";
  constexpr size_t kBeginning = 1 << 20;
  return begins_like_records(read_beginning(path, kBeginning).value_or("")) ? "jsonl" : "";
}

ordered_json describe_corpus(const std::string& path, const std::string& format, std::vector<json>* sample) {
  const CorpusFiles corpus = find_corpus_files(path, format);
  FirstRecords first;
  ordered_json about;
  about["format"] = corpus.format == CorpusFormat::csv         ? "csv"
                    : corpus.format != CorpusFormat::table     ? "jsonl"
                    : corpus.files.front().ends_with(".arrow") ? "arrow"
                                                               : "parquet";
  about["files"] = corpus.files.size();
  about["records"] = 0;
  about["columns"] = ordered_json::array();
  about["first"] = nullptr;
  const auto describe = corpus.format == CorpusFormat::table ? describe_parquet
                        : corpus.format == CorpusFormat::csv ? describe_csv
                                                             : describe_jsonl;
  about["records"] = describe(corpus.files, about, first);
  if (corpus.format == CorpusFormat::jsonl && about["columns"].empty() && about["records"] > 0)
    for (const std::string& file : corpus.files) refuse_foreign(file, file);
  if (!first.records.empty()) about["first"] = shortened(first.records.front());
  if (sample) *sample = std::move(first.records);
  return about;
}

}  // namespace sheaf

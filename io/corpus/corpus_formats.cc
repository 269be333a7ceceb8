#include "io/corpus/corpus_formats.h"

#include <algorithm>

#include "io/base/csv_reader.h"
#include "io/base/foreign_files.h"
#include "io/base/line_reader.h"
#include "io/base/store_uri.h"
#include "io/base/table_file.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr int kProbedLines = 100;
constexpr size_t kProbedColumns = 1000;

class JsonlReader : public RecordReader {
 public:
  JsonlReader(const std::string& path, const RecordMapper& mapper) : lines_(path), mapper_(mapper) {}

  bool next() override {
    line_ = lines_.next_record();
    return line_.has_value();
  }

  CorpusRow row(const std::string& file, int64_t number) const override {
    Place place{file, line_->number};
    try {
      line_->check();
      const json cells =
          parse_json_line(line_->text, [&](const std::string& key) { return mapper_.wants(key); });
      return mapper_.map(std::move(place), cells, number, line_->text);
    } catch (const BadText& bad) {
      return Reject{std::move(place), nullptr, bad.reason};
    }
  }

  int64_t taken() const override { return lines_.taken(); }

 private:
  LineReader lines_;
  const RecordMapper& mapper_;
  std::optional<LineReader::Line> line_;
};

/// The keys of the first rows of a file, in the order of their first appearance.
std::vector<std::string> probe_columns(const std::string& file) {
  std::vector<std::string> columns;
  std::unordered_set<std::string> seen;
  LineReader reader(file);
  for (int i = 0; i < kProbedLines; ++i) {
    const auto line = reader.next();
    if (!line) break;
    std::vector<std::string> keys;
    const auto note = [&](const std::string& key) {
      if (keys.size() < kProbedColumns) keys.push_back(key);
      return false;
    };
    if (!read_json(line->text, {.keep = note}).is_object()) continue;  // it will be a reject of its own
    for (std::string& key : keys)
      if (columns.size() < kProbedColumns && seen.insert(key).second) columns.push_back(std::move(key));
  }
  return columns;
}

constexpr size_t kCheckedInStore = 100;  // headers, which take a request each

/// A cell as JSON has it. An empty one is null; a list stands in its cell as JSON.
json cell_of(std::string text, bool list) {
  if (text.empty()) return nullptr;
  if (list) {
    json value = read_json(text, {.values = 1'000'000});
    if (value.is_array()) return value;
  }
  return text;
}

class CsvRecords : public RecordReader {
 public:
  /// Refuses a header without the mapped columns.
  CsvRecords(const std::string& path, const std::string& name, const RecordMapper& mapper)
      : rows_(path, name), mapper_(mapper) {
    const std::vector<std::string>& header = rows_.columns();
    if (header.empty()) return;  // an empty file has no rows
    for (const MappedColumn& wanted : mapper.columns()) {
      if (!wanted.optional) check_column(wanted, header, name);
      const auto times = std::ranges::count(header, wanted.name);
      if (times > 1)
        refuse("{}: {} has more than one column \"{}\"; rename one of them", wanted.place, name, wanted.name);
      if (times == 1)
        columns_.emplace_back(static_cast<size_t>(std::ranges::find(header, wanted.name) - header.begin()),
                              &wanted);
    }
  }

  bool next() override {
    row_ = rows_.next();
    return row_.has_value();
  }

  CorpusRow row(const std::string& file, int64_t number) const override {
    Place place{file, row_->line};
    if (!row_->error.empty()) return Reject{std::move(place), nullptr, row_->error};
    json cells = json::object();
    for (const auto& [at, column] : columns_) cells[column->name] = cell_of(rows_.field(at), column->list);
    return mapper_.map(std::move(place), cells, number);
  }

  int64_t taken() const override { return rows_.taken(); }

 private:
  CsvReader rows_;
  const RecordMapper& mapper_;
  std::vector<std::pair<size_t, const MappedColumn*>> columns_;  // where they stand
  std::optional<CsvReader::Row> row_;
};

class ParquetCorpus : public Corpus {
 public:
  ParquetCorpus(std::vector<std::string> files, RecordMapper mapper, int64_t rows)
      : files_(std::move(files)), mapper_(std::move(mapper)), rows_(rows) {}

  std::optional<CorpusRow> next() override {
    const auto read = read_row();
    if (!read) return std::nullopt;
    row_ += read->rows;
    if (!read->error.empty()) return Reject{{files_[index_], read->number}, nullptr, read->error};
    return mapper_.map({files_[index_], read->number}, read->cells, row_);
  }

  int64_t position() const override { return row_; }

  void skip_to(int64_t position) override {
    while (row_ < position && open_file()) {
      row_ += file_->skip_groups(position - row_);
      if (row_ == position) return;
      if (const auto read = file_->next_row())
        row_ += read->rows;  // a lost stretch was reported by whoever read its first row
      else
        close_file();
    }
  }

  int64_t count_records(int64_t most) override { return std::min(rows_, most); }
  std::optional<int64_t> records_expected() const override { return rows_; }

 private:
  /// False after the last file.
  bool open_file() {
    if (file_ || index_ == files_.size()) return file_ != nullptr;
    file_ = std::make_unique<TableFile>(files_[index_]);
    std::vector<std::string> names;
    for (const TableFile::Column& column : file_->columns())
      if (mapper_.wants(column.name)) names.push_back(column.name);
    file_->select(names);
    return true;
  }

  void close_file() {
    file_.reset();
    ++index_;
  }

  /// The next row, or rows that cannot be read, in the next file if need be.
  std::optional<TableFile::Row> read_row() {
    for (; open_file(); close_file())
      if (auto row = file_->next_row()) return row;
    return std::nullopt;
  }

  std::vector<std::string> files_;
  RecordMapper mapper_;
  int64_t rows_;
  size_t index_ = 0;
  std::unique_ptr<TableFile> file_;
  int64_t row_ = 0;
};

/// The name of the first field in Arrow's "struct<name: string, …>".
std::string first_field(const std::string& type) {
  const size_t begin = type.find('<') + 1;
  return type.substr(begin, type.find(':', begin) - begin);
}

}  // namespace

void check_columns(const std::vector<TableFile::Column>& columns, const std::string& path,
                   const RecordMapper& mapper) {
  std::vector<std::string> names;
  for (const TableFile::Column& column : columns) names.push_back(column.name);
  for (const MappedColumn& wanted : mapper.columns()) {
    if (!wanted.optional) check_column(wanted, names, path);
    if (std::count(names.begin(), names.end(), wanted.name) > 1)
      refuse("{}: {} has more than one column \"{}\"", wanted.place, path, wanted.name);
    for (const TableFile::Column& column : columns) {
      if (wanted.kept && column.name == wanted.name && column.shape == TableFile::Column::Shape::other)
        refuse("{}: column \"{}\" of {} is {}; sheaf keeps text, numbers and lists of them", wanted.place,
               wanted.name, path, column.type);
      if (wanted.kept) continue;
      const auto shape = wanted.list ? TableFile::Column::Shape::list : TableFile::Column::Shape::scalar;
      const bool list_will_do = wanted.texts && column.shape == TableFile::Column::Shape::list;
      if (column.name == wanted.name && column.shape != shape && column.type != "null" && !list_will_do)
        refuse("{}: column \"{}\" of {} is {}, not {}{}", wanted.place, wanted.name, path, column.type,
               wanted.list ? "a list" : "text or a number",
               column.type.starts_with("struct<") ? fmt::format("; name one of its fields, such as {}.{}",
                                                                wanted.name, first_field(column.type))
                                                  : "");
    }
  }
}

void refuse_foreign(const std::string& path, const std::string& name) {
  std::string first(1 << 12, '\0');
  first.resize(open_bytes(path)->read(first.data(), first.size()));
  if (const std::string found = describe_foreign(name, first); !found.empty()) refuse("{}: {}", name, found);
}

std::unique_ptr<Corpus> open_jsonl_corpus(const TextFiles& text, RecordMapper mapper) {
  for (size_t i = 0; i < text.paths.size(); ++i) {
    const std::vector<std::string> columns = probe_columns(text.paths[i]);
    if (columns.empty()) {
      refuse_foreign(text.paths[i], text.names[i]);
      continue;
    }
    for (const MappedColumn& column : mapper.columns())
      if (!column.optional) check_column(column, columns, text.names[i]);
    break;
  }
  for (const std::string& path : text.paths)
    if (!is_uri(path)) open_bytes(path);  // better now than after hours of work
  const bool numbered = mapper.numbers_records();
  return open_text_corpus(
      text,
      [paths = text.paths, shared = std::make_shared<const RecordMapper>(std::move(mapper))](size_t file) {
        return std::make_unique<JsonlReader>(paths[file], *shared);
      },
      numbered);
}

std::unique_ptr<Corpus> open_csv_corpus(const TextFiles& text, RecordMapper mapper) {
  const bool numbered = mapper.numbers_records();
  const auto open = [text, shared = std::make_shared<const RecordMapper>(std::move(mapper))](size_t file) {
    return std::make_unique<CsvRecords>(text.paths[file], text.names[file], *shared);
  };
  for (size_t i = 0; i < text.paths.size(); ++i)  // better now than after hours of work
    if (i < kCheckedInStore || !is_uri(text.paths[i])) open(i);
  return open_text_corpus(text, open, numbered);
}

std::unique_ptr<Corpus> open_parquet_corpus(std::vector<std::string> files, RecordMapper mapper) {
  int64_t rows = 0;
  for (const std::string& path : files) {
    const TableFile file(path);
    check_columns(file.columns(), path, mapper);
    rows += file.rows();
  }
  return std::make_unique<ParquetCorpus>(std::move(files), std::move(mapper), rows);
}

}  // namespace sheaf

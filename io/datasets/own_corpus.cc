#include <fmt/format.h>

#include "io/base/csv_reader.h"
#include "io/base/globs.h"
#include "io/base/table_file.h"
#include "io/datasets/entry.h"
#include "io/datasets/readers.h"

// The corpora that `sheaf convert` writes, read back with their gold answers.

namespace sheaf {
namespace {

using nlohmann::ordered_json;

class ParquetReader : public DatasetReader {
 public:
  explicit ParquetReader(const std::string& path) : path_(path), file_(path) {
    std::vector<std::string> columns;
    for (const TableFile::Column& column : file_.columns()) columns.push_back(column.name);
    file_.select(columns);
  }

  std::optional<DatasetRow> next() override {
    if (!batch_ || at_ == batch_->cells.size()) {
      batch_ = file_.next();
      at_ = 0;
      if (!batch_) return std::nullopt;
      if (!batch_->error.empty())
        return DatasetRow{{path_, batch_->first_row}, {}, batch_->error, row_name(batch_->first_row)};
    }
    const int64_t row = batch_->first_row + static_cast<int64_t>(at_);
    return DatasetRow{{path_, row}, batch_->cells[at_++], {}, row_name(row)};
  }

 private:
  static std::string row_name(int64_t row) { return fmt::format("row {}", row); }

  std::string path_;
  TableFile file_;
  std::optional<TableFile::Batch> batch_;
  size_t at_ = 0;
};

class CsvRows : public DatasetReader {
 public:
  explicit CsvRows(const std::string& path) : path_(path), rows_(path) {}

  std::optional<DatasetRow> next() override {
    const auto row = rows_.next();
    if (!row) return std::nullopt;
    DatasetRow found{{path_, row->line}, ordered_json::object(), row->error};
    if (row->error.empty())
      for (size_t i = 0; i < rows_.columns().size(); ++i)
        found.cells[rows_.columns()[i]] = csv_cell(rows_.field(i));
    return found;
  }

 private:
  std::string path_;
  CsvReader rows_;
};

/// One file after the other.
class FilesReader : public DatasetReader {
 public:
  explicit FilesReader(CorpusFiles corpus) : corpus_(std::move(corpus)) {}

  std::optional<DatasetRow> next() override {
    for (; file_ < corpus_.files.size(); ++file_, reader_.reset()) {
      if (!reader_) reader_ = open(corpus_.files[file_]);
      if (auto row = reader_->next()) return row;
    }
    return std::nullopt;
  }

 private:
  std::unique_ptr<DatasetReader> open(const std::string& path) const {
    if (corpus_.format == CorpusFormat::table) return std::make_unique<ParquetReader>(path);
    if (corpus_.format == CorpusFormat::csv) return std::make_unique<CsvRows>(path);
    return json_lines_reader(path, "corpus", {}, [](const ordered_json& line, int64_t) { return line; });
  }

  CorpusFiles corpus_;
  size_t file_ = 0;
  std::unique_ptr<DatasetReader> reader_;
};

}  // namespace

std::unique_ptr<DatasetReader> open_own_corpus(const std::string& path) {
  return std::make_unique<FilesReader>(find_table_files(path, "auto"));
}

}  // namespace sheaf

#include <algorithm>

#include "core/base/error.h"
#include "io/base/table_file.h"
#include "io/corpus/corpus_formats.h"

namespace sheaf {
namespace {

class ParquetCorpus : public Corpus {
 public:
  ParquetCorpus(std::vector<std::string> files, RecordMapper mapper, int64_t rows)
      : files_(std::move(files)), mapper_(std::move(mapper)), rows_(rows) {
    for (const MappedColumn& column : mapper_.columns()) names_.push_back(column.name);
  }

  std::optional<Row> next() override {
    while (given_ == batch_.cells.size()) {
      if (index_ == files_.size()) return std::nullopt;
      if (auto lost = read_batch()) return lost;
    }
    Place place{files_[index_], batch_.first_row + static_cast<int64_t>(given_)};
    return mapper_.map(std::move(place), batch_.cells[given_++], ++row_);
  }

  int64_t position() const override { return row_; }

  void skip_to(int64_t position) override {
    while (row_ < position) {
      if (given_ < batch_.cells.size()) {
        const auto step = std::min(position - row_, static_cast<int64_t>(batch_.cells.size() - given_));
        given_ += static_cast<size_t>(step);
        row_ += step;
        continue;
      }
      if (index_ == files_.size()) return;
      open_file();
      row_ += file_->skip_groups(position - row_);
      if (row_ < position) read_batch();  // a lost stretch was reported by whoever read its first row
    }
  }

  int64_t count_records(int64_t most) override { return std::min(rows_, most); }
  std::optional<int64_t> records_expected() const override { return rows_; }

 private:
  void open_file() {
    if (file_) return;
    file_ = std::make_unique<TableFile>(files_[index_]);
    file_->select(names_);
  }

  /// Reads the next batch of the current file, or goes on to the next file. A batch that cannot be read is
  /// given back as one reject for all its rows.
  std::optional<Row> read_batch() {
    given_ = 0;
    batch_ = {};
    open_file();
    auto batch = file_->next();
    if (!batch) {
      file_.reset();
      ++index_;
      return std::nullopt;
    }
    if (!batch->error.empty()) {
      row_ += batch->rows;
      return Reject{{files_[index_], batch->first_row}, nullptr, batch->error};
    }
    batch_ = std::move(*batch);
    return std::nullopt;
  }

  std::vector<std::string> files_;
  RecordMapper mapper_;
  int64_t rows_;
  std::vector<std::string> names_;
  size_t index_ = 0;
  std::unique_ptr<TableFile> file_;
  TableFile::Batch batch_;
  size_t given_ = 0;
  int64_t row_ = 0;
};

void check_columns(const TableFile& file, const std::string& path, const RecordMapper& mapper) {
  std::vector<std::string> names;
  for (const TableFile::Column& column : file.columns()) names.push_back(column.name);
  for (const MappedColumn& wanted : mapper.columns()) {
    if (!wanted.optional) check_column(wanted, names, path);
    if (std::count(names.begin(), names.end(), wanted.name) > 1)
      refuse("{}: {} has more than one column \"{}\"", wanted.place, path, wanted.name);
    for (const TableFile::Column& column : file.columns()) {
      if (wanted.kept && column.name == wanted.name && column.shape == TableFile::Column::Shape::other)
        refuse("{}: column \"{}\" of {} is {}; sheaf keeps text, numbers and lists of them", wanted.place,
               wanted.name, path, column.type);
      if (wanted.kept) continue;
      const auto shape = wanted.list ? TableFile::Column::Shape::list : TableFile::Column::Shape::scalar;
      if (column.name == wanted.name && column.shape != shape && column.type != "null")
        refuse("{}: column \"{}\" of {} is {}, not {}", wanted.place, wanted.name, path, column.type,
               wanted.list ? "a list" : "text or a number");
    }
  }
}

}  // namespace

std::unique_ptr<Corpus> open_parquet_corpus(std::vector<std::string> files, RecordMapper mapper) {
  int64_t rows = 0;
  for (const std::string& path : files) {
    const TableFile file(path);
    check_columns(file, path, mapper);
    rows += file.rows();
  }
  return std::make_unique<ParquetCorpus>(std::move(files), std::move(mapper), rows);
}

}  // namespace sheaf

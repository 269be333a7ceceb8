#include "io/base/table_file.h"

#include <algorithm>
#include <arrow/type.h>
#include <numeric>

#include "core/base/error.h"
#include "io/base/store_retry.h"
#include "io/base/table_batch.h"
#include "io/base/table_source.h"

namespace sheaf {
namespace {

constexpr int64_t kMostRows = 1LL << 40;

}  // namespace

void check_source(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

void TableFile::open() {
  try {
    source_->open(path_);
    columns_ = describe_columns(*source_->schema());
    group_rows_ = source_->group_rows();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // parquet throws where a footer is broken
    check_read(path_);
    refuse("{}: this is not a readable {} file: {}", path_, source_->name(), fit_to_print(error.what()));
  }
  int64_t total = 0;
  for (size_t i = 0; i < group_rows_.size(); ++i) {
    if (group_rows_[i] < 0 || group_rows_[i] > kMostRows - total)
      refuse("{}: this is not a readable {} file: row group {} claims to have {} rows", path_,
             source_->name(), i, group_rows_[i]);
    total += group_rows_[i];
  }
}

TableFile::Batch TableFile::lose_rest(const std::string& reason) {
  check_read(path_);
  Batch lost;
  lost.first_row = done_before_ + done_in_group_ + 1;
  lost.rows = group_rows_[group_] - done_in_group_;
  lost.error =
      fmt::format("rows {}-{} cannot be read: {}", lost.first_row, lost.first_row + lost.rows - 1, reason);
  next_group();
  return lost;
}

void TableFile::next_group() {
  source_->batches.reset();
  done_before_ += group_rows_[group_];
  done_in_group_ = 0;
  ++group_;
}

std::optional<TableFile::Batch> TableFile::step() {
  if (!source_->batches) source_->batches = source_->open_group(group_);
  std::shared_ptr<arrow::RecordBatch> read;
  check_source(source_->batches->ReadNext(&read));
  const int64_t left = group_rows_[group_] - done_in_group_;
  if (!read || read->num_rows() == 0) {
    if (left > 0) return lose_rest("the row group ends early");
    next_group();
    return std::nullopt;
  }
  check_source(read->Validate());
  Batch batch;
  batch.first_row = done_before_ + done_in_group_ + 1;
  batch.rows = std::min(read->num_rows(), left);
  batch.cells = read_cells(*read, batch.rows, decimals_as_numbers_);
  done_in_group_ += batch.rows;
  return batch;
}

TableFile::TableFile(const std::string& path)
    : path_(path), source_(path.ends_with(".arrow") ? arrow_source() : parquet_source()) {
  open();
}

TableFile::~TableFile() = default;

int64_t TableFile::rows() const {
  return std::accumulate(group_rows_.begin(), group_rows_.end(), int64_t{0});
}

std::string TableFile::about() const {
  return source_->about();
}

void TableFile::select(const std::vector<std::string>& names) {
  std::vector<int> chosen;
  for (size_t i = 0; i < columns_.size(); ++i)
    if (std::ranges::find(names, columns_[i].name) != names.end()) chosen.push_back(static_cast<int>(i));
  source_->select(chosen);
}

int64_t TableFile::skip_groups(int64_t most) {
  int64_t skipped = 0;
  while (!source_->batches && group_ < group_rows_.size() && group_rows_[group_] <= most - skipped) {
    skipped += group_rows_[group_];
    next_group();
  }
  return skipped;
}

std::optional<TableFile::Batch> TableFile::next() {
  while (group_ < group_rows_.size()) {
    const size_t group = group_;
    try {
      if (auto batch = step()) return batch;
    } catch (const std::exception& error) {
      if (group_ == group) return lose_rest(fit_to_print(error.what()));
    }
  }
  return std::nullopt;
}

std::optional<TableFile::Row> TableFile::next_row() {
  while (given_ == batch_.cells.size()) {
    auto batch = next();
    if (!batch) return std::nullopt;
    if (!batch->error.empty()) return Row{batch->first_row, batch->rows, {}, batch->error};
    batch_ = std::move(*batch);
    given_ = 0;
  }
  Row row{batch_.first_row + static_cast<int64_t>(given_), 1, std::move(batch_.cells[given_]), {}};
  ++given_;
  return row;
}

}  // namespace sheaf

#include "io/base/table_file.h"

#include <algorithm>
#include <arrow/extension_type.h>
#include <arrow/type.h>
#include <numeric>

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/base/arrow_cell.h"
#include "io/base/store_retry.h"
#include "io/base/table_source.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr int64_t kMostMemory = 2LL << 30;  // of one file's pages and batches; a hostile page size stops here
constexpr int64_t kMostRows = 1LL << 40;

/// Text out of the file or of Arrow, fit for a message: one line, valid, not long.
std::string fit_to_print(std::string_view text) {
  std::string line = shorten_text(replace_invalid(text), 200);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

TableFile::Column::Shape shape_of(const arrow::DataType& type) {
  using Shape = TableFile::Column::Shape;
  switch (type.id()) {
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
      return Shape::list;
    case arrow::Type::DICTIONARY:
      return shape_of(*static_cast<const arrow::DictionaryType&>(type).value_type());
    case arrow::Type::EXTENSION:
      return shape_of(*static_cast<const arrow::ExtensionType&>(type).storage_type());
    default:
      return type.num_fields() > 0 ? Shape::other : Shape::scalar;
  }
}

}  // namespace

void check_source(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

struct TableFile::Reader {
  std::string path;
  arrow::CappedMemoryPool pool{arrow::default_memory_pool(), kMostMemory};
  std::unique_ptr<TableSource> source;
  std::vector<Column> columns;
  std::vector<int64_t> group_rows;
  std::unique_ptr<arrow::RecordBatchReader> batches;  // of row group `group`; null before it is opened
  size_t group = 0;
  int64_t done_before = 0;    // rows of the groups before this one
  int64_t done_in_group = 0;  // rows of this group given out

  void open();
  std::optional<Batch> step();
  Batch lose_rest(const std::string& reason);
  void next_group();
};

void TableFile::Reader::open() {
  source = path.ends_with(".arrow") ? arrow_source(pool) : parquet_source(pool);
  try {
    source->open(path);
    const std::shared_ptr<arrow::Schema> schema = source->schema();
    for (const auto& field : schema->fields())
      columns.push_back({replace_invalid(field->name()), fit_to_print(field->type()->ToString()),
                         shape_of(*field->type())});
    group_rows = source->group_rows();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // parquet throws where a footer is broken
    check_read(path);
    refuse("{}: this is not a readable {} file: {}", path, source->name(), fit_to_print(error.what()));
  }
  int64_t total = 0;
  for (size_t i = 0; i < group_rows.size(); ++i) {
    if (group_rows[i] < 0 || group_rows[i] > kMostRows - total)
      refuse("{}: this is not a readable {} file: row group {} claims to have {} rows", path, source->name(),
             i, group_rows[i]);
    total += group_rows[i];
  }
}

TableFile::Batch TableFile::Reader::lose_rest(const std::string& reason) {
  check_read(path);
  Batch lost;
  lost.first_row = done_before + done_in_group + 1;
  lost.rows = group_rows[group] - done_in_group;
  lost.error =
      fmt::format("rows {}-{} cannot be read: {}", lost.first_row, lost.first_row + lost.rows - 1, reason);
  next_group();
  return lost;
}

void TableFile::Reader::next_group() {
  batches.reset();
  done_before += group_rows[group];
  done_in_group = 0;
  ++group;
}

std::optional<TableFile::Batch> TableFile::Reader::step() {
  if (!batches) batches = source->open_group(group);
  std::shared_ptr<arrow::RecordBatch> read;
  check_source(batches->ReadNext(&read));
  const int64_t left = group_rows[group] - done_in_group;
  if (!read || read->num_rows() == 0) {
    if (left > 0) return lose_rest("the row group ends early");
    next_group();
    return std::nullopt;
  }
  check_source(read->Validate());
  Batch batch;
  batch.first_row = done_before + done_in_group + 1;
  batch.rows = std::min(read->num_rows(), left);
  batch.cells.assign(static_cast<size_t>(batch.rows), json::object());
  for (int c = 0; c < read->num_columns(); ++c) {
    const std::shared_ptr<arrow::Array> array = read->column(c);
    const std::string name = replace_invalid(read->schema()->field(c)->name());
    for (int64_t row = 0; row < batch.rows; ++row)
      batch.cells[static_cast<size_t>(row)][name] = cell_value(*array, row);
  }
  done_in_group += batch.rows;
  return batch;
}

TableFile::TableFile(const std::string& path) : reader_(std::make_unique<Reader>()) {
  reader_->path = path;
  reader_->open();
}

TableFile::~TableFile() = default;

const std::vector<TableFile::Column>& TableFile::columns() const {
  return reader_->columns;
}

int64_t TableFile::rows() const {
  return std::accumulate(reader_->group_rows.begin(), reader_->group_rows.end(), int64_t{0});
}

std::string TableFile::about() const {
  return reader_->source->about();
}

int TableFile::row_groups() const {
  return static_cast<int>(reader_->group_rows.size());
}

void TableFile::select(const std::vector<std::string>& names) {
  std::vector<int> chosen;
  for (size_t i = 0; i < reader_->columns.size(); ++i)
    if (std::ranges::find(names, reader_->columns[i].name) != names.end())
      chosen.push_back(static_cast<int>(i));
  reader_->source->select(chosen);
}

int64_t TableFile::skip_groups(int64_t most) {
  int64_t skipped = 0;
  while (!reader_->batches && reader_->group < reader_->group_rows.size() &&
         reader_->group_rows[reader_->group] <= most - skipped) {
    skipped += reader_->group_rows[reader_->group];
    reader_->next_group();
  }
  return skipped;
}

std::optional<TableFile::Batch> TableFile::next() {
  while (reader_->group < reader_->group_rows.size()) {
    const size_t group = reader_->group;
    try {
      if (auto batch = reader_->step()) return batch;
    } catch (const std::exception& error) {
      if (reader_->group == group) return reader_->lose_rest(fit_to_print(error.what()));
    }
  }
  return std::nullopt;
}

}  // namespace sheaf

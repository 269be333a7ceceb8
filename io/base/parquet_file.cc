#include "io/base/parquet_file.h"

#include <algorithm>
#include <arrow/array.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <fcntl.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/base/descriptor.h"
#include "io/base/foreign_files.h"
#include "io/base/store.h"
#include "io/base/store_retry.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr int64_t kBatchRows = 64;          // documents may have megabytes each
constexpr int64_t kMostMemory = 2LL << 30;  // of one file's pages and batches; a hostile page size stops here
constexpr int kMostDepth = 8;
constexpr int64_t kMostRows = 1LL << 40;

/// Text out of the file or of Arrow, fit for a message: one line, valid, not long.
std::string fit_to_print(std::string_view text) {
  std::string line = shorten_text(valid_utf8(text), 200);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::string reason_of(const arrow::Status& status) {
  return fit_to_print(status.message());
}

json cell_value(const arrow::Array& array, int64_t row, int depth);
json other_cell(const arrow::Array& array, int64_t row);

template <class TypedArray>
json number_cell(const arrow::Array& array, int64_t row) {
  return static_cast<const TypedArray&>(array).Value(row);
}

template <class TypedArray>
json text_cell(const arrow::Array& array, int64_t row) {
  return std::string(static_cast<const TypedArray&>(array).GetView(row));
}

template <class ListArray>
json list_cell(const arrow::Array& array, int64_t row, int depth) {
  const auto& list = static_cast<const ListArray&>(array);
  json cells = json::array();
  const int64_t begin = list.value_offset(row), end = begin + list.value_length(row);
  for (int64_t i = begin; i < end; ++i) cells.push_back(cell_value(*list.values(), i, depth + 1));
  return cells;
}

json struct_cell(const arrow::Array& array, int64_t row, int depth) {
  const auto& record = static_cast<const arrow::StructArray&>(array);
  json cells = json::object();
  for (int i = 0; i < record.num_fields(); ++i)
    cells[valid_utf8(record.struct_type()->field(i)->name())] = cell_value(*record.field(i), row, depth + 1);
  return cells;
}

/// An object; where keys are no texts, Arrow's text of it.
json map_cell(const arrow::Array& array, int64_t row, int depth) {
  const auto& map = static_cast<const arrow::MapArray&>(array);
  if (map.keys()->type_id() != arrow::Type::STRING) return other_cell(array, row);
  json cells = json::object();
  for (int64_t i = map.value_offset(row); i < map.value_offset(row) + map.value_length(row); ++i)
    cells[valid_utf8(static_cast<const arrow::StringArray&>(*map.keys()).GetString(i))] =
        cell_value(*map.items(), i, depth + 1);
  return cells;
}

json dictionary_cell(const arrow::Array& array, int64_t row, int depth) {
  const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
  const int64_t index = coded.GetValueIndex(row);
  if (index < 0 || index >= coded.dictionary()->length()) return nullptr;
  return cell_value(*coded.dictionary(), index, depth + 1);
}

/// What has no JSON form of its own (dates, decimals) becomes Arrow's text of it.
json other_cell(const arrow::Array& array, int64_t row) {
  const auto scalar = array.GetScalar(row);
  return scalar.ok() ? json((*scalar)->ToString()) : json(nullptr);
}

json cell_value(const arrow::Array& array, int64_t row, int depth) {
  if (depth > kMostDepth || row < 0 || row >= array.length() || array.IsNull(row)) return nullptr;
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      return number_cell<arrow::BooleanArray>(array, row);
    case arrow::Type::INT8:
      return number_cell<arrow::Int8Array>(array, row);
    case arrow::Type::INT16:
      return number_cell<arrow::Int16Array>(array, row);
    case arrow::Type::INT32:
      return number_cell<arrow::Int32Array>(array, row);
    case arrow::Type::INT64:
      return number_cell<arrow::Int64Array>(array, row);
    case arrow::Type::UINT8:
      return number_cell<arrow::UInt8Array>(array, row);
    case arrow::Type::UINT16:
      return number_cell<arrow::UInt16Array>(array, row);
    case arrow::Type::UINT32:
      return number_cell<arrow::UInt32Array>(array, row);
    case arrow::Type::UINT64:
      return number_cell<arrow::UInt64Array>(array, row);
    case arrow::Type::FLOAT:
      return number_cell<arrow::FloatArray>(array, row);
    case arrow::Type::DOUBLE:
      return number_cell<arrow::DoubleArray>(array, row);
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return text_cell<arrow::BinaryArray>(array, row);
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return text_cell<arrow::LargeBinaryArray>(array, row);
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
      return text_cell<arrow::BinaryViewArray>(array, row);
    case arrow::Type::FIXED_SIZE_BINARY:
      return text_cell<arrow::FixedSizeBinaryArray>(array, row);
    case arrow::Type::LIST:
      return list_cell<arrow::ListArray>(array, row, depth);
    case arrow::Type::LARGE_LIST:
      return list_cell<arrow::LargeListArray>(array, row, depth);
    case arrow::Type::FIXED_SIZE_LIST:
      return list_cell<arrow::FixedSizeListArray>(array, row, depth);
    case arrow::Type::STRUCT:
      return struct_cell(array, row, depth);
    case arrow::Type::MAP:
      return map_cell(array, row, depth);
    case arrow::Type::DICTIONARY:
      return dictionary_cell(array, row, depth);
    case arrow::Type::EXTENSION:
      return cell_value(*static_cast<const arrow::ExtensionArray&>(array).storage(), row, depth + 1);
    default:
      return other_cell(array, row);
  }
}

ParquetFile::Column::Shape shape_of(const arrow::DataType& type) {
  using Shape = ParquetFile::Column::Shape;
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

/// Says what a file is instead where its first bytes tell.
void check_begins_as_parquet(const std::string& path) {
  const Descriptor file = open_regular(path, O_RDONLY);
  if (file.number() < 0) refuse_unopened(path);
  std::string first(4096, '\0');
  first.resize(
      static_cast<size_t>(std::max<int64_t>(0, read_at(file.number(), 0, first.data(), std::ssize(first)))));
  if (const std::string other = describe_no_parquet(path, first); !other.empty())
    refuse("{}: {}", path, other);
}

void collect_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
  if (field.column_index >= 0) leaves.push_back(field.column_index);
  for (const auto& child : field.children) collect_leaves(child, leaves);
}

}  // namespace

struct ParquetFile::Reader {
  std::string path;
  arrow::CappedMemoryPool pool{arrow::default_memory_pool(), kMostMemory};
  std::unique_ptr<parquet::arrow::FileReader> file;
  std::vector<Column> columns;
  std::vector<int> leaves;
  std::vector<int64_t> group_rows;
  std::unique_ptr<arrow::RecordBatchReader> batches;  // of row group `group`; null before it is opened
  size_t group = 0;
  int64_t done_before = 0;    // rows of the groups before this one
  int64_t done_in_group = 0;  // rows of this group given out

  void open();
  [[noreturn]] void refuse_unread(const std::string& reason) const;
  std::optional<Batch> step();
  Batch lose_rest(const std::string& reason);
  void next_group();
};

void ParquetFile::Reader::refuse_unread(const std::string& reason) const {
  check_read(path);
  refuse("{}: this is not a readable Parquet file: {}", path, reason);
}

void ParquetFile::Reader::open() {
  parquet::ReaderProperties properties(&pool);
  properties.enable_buffered_stream();
  properties.set_page_checksum_verification(true);
  parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
  arrow_properties.set_batch_size(kBatchRows);
  arrow_properties.set_pre_buffer(false);
  parquet::arrow::FileReaderBuilder builder;
  if (!is_uri(path)) check_begins_as_parquet(path);
  if (auto status = is_uri(path) ? builder.Open(open_store_file(path), properties)
                                 : builder.OpenFile(path, false, properties);
      !status.ok())
    refuse_unread(reason_of(status));
  auto built = builder.memory_pool(&pool)->properties(arrow_properties)->Build();
  if (!built.ok()) refuse_unread(reason_of(built.status()));
  file = std::move(built).ValueUnsafe();
  for (const auto& field : file->manifest().schema_fields)
    columns.push_back({valid_utf8(field.field->name()), fit_to_print(field.field->type()->ToString()),
                       shape_of(*field.field->type())});
  const auto metadata = file->parquet_reader()->metadata();
  int64_t total = 0;
  for (int i = 0; i < metadata->num_row_groups(); ++i) {
    const int64_t count = metadata->RowGroup(i)->num_rows();
    if (count < 0 || count > kMostRows - total)
      refuse("{}: this is not a readable Parquet file: row group {} claims to have {} rows", path, i, count);
    total += count;
    group_rows.push_back(count);
  }
}

ParquetFile::Batch ParquetFile::Reader::lose_rest(const std::string& reason) {
  check_read(path);
  Batch lost;
  lost.first_row = done_before + done_in_group + 1;
  lost.rows = group_rows[group] - done_in_group;
  lost.error =
      fmt::format("rows {}-{} cannot be read: {}", lost.first_row, lost.first_row + lost.rows - 1, reason);
  next_group();
  return lost;
}

void ParquetFile::Reader::next_group() {
  batches.reset();
  done_before += group_rows[group];
  done_in_group = 0;
  ++group;
}

std::optional<ParquetFile::Batch> ParquetFile::Reader::step() {
  if (!batches) {
    auto opened = file->GetRecordBatchReader({static_cast<int>(group)}, leaves);
    if (!opened.ok()) return lose_rest(reason_of(opened.status()));
    batches = std::move(opened).ValueUnsafe();
  }
  std::shared_ptr<arrow::RecordBatch> read;
  if (auto status = batches->ReadNext(&read); !status.ok()) return lose_rest(reason_of(status));
  const int64_t left = group_rows[group] - done_in_group;
  if (!read || read->num_rows() == 0) {
    if (left > 0) return lose_rest("the row group ends early");
    next_group();
    return std::nullopt;
  }
  if (auto status = read->Validate(); !status.ok()) return lose_rest(reason_of(status));
  Batch batch;
  batch.first_row = done_before + done_in_group + 1;
  batch.rows = std::min(read->num_rows(), left);
  batch.cells.assign(static_cast<size_t>(batch.rows), json::object());
  for (int c = 0; c < read->num_columns(); ++c) {
    const std::shared_ptr<arrow::Array> array = read->column(c);
    const std::string name = valid_utf8(read->schema()->field(c)->name());
    for (int64_t row = 0; row < batch.rows; ++row)
      batch.cells[static_cast<size_t>(row)][name] = cell_value(*array, row, 0);
  }
  done_in_group += batch.rows;
  return batch;
}

ParquetFile::ParquetFile(const std::string& path) : reader_(std::make_unique<Reader>()) {
  reader_->path = path;
  try {
    reader_->open();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // parquet throws where a footer is broken
    reader_->refuse_unread(fit_to_print(error.what()));
  }
}

ParquetFile::~ParquetFile() = default;

const std::vector<ParquetFile::Column>& ParquetFile::columns() const {
  return reader_->columns;
}

int64_t ParquetFile::rows() const {
  int64_t total = 0;
  for (int64_t count : reader_->group_rows) total += count;
  return total;
}

std::string ParquetFile::about() const {
  const auto kept = reader_->file->parquet_reader()->metadata()->key_value_metadata();
  return kept ? kept->Get("sheaf").ValueOr("") : std::string();
}

int ParquetFile::row_groups() const {
  return static_cast<int>(reader_->group_rows.size());
}

void ParquetFile::select(const std::vector<std::string>& names) {
  const auto& fields = reader_->file->manifest().schema_fields;
  for (size_t i = 0; i < fields.size(); ++i)
    if (std::find(names.begin(), names.end(), reader_->columns[i].name) != names.end())
      collect_leaves(fields[i], reader_->leaves);
}

int64_t ParquetFile::skip_groups(int64_t most) {
  int64_t skipped = 0;
  while (!reader_->batches && reader_->group < reader_->group_rows.size() &&
         reader_->group_rows[reader_->group] <= most - skipped) {
    skipped += reader_->group_rows[reader_->group];
    reader_->next_group();
  }
  return skipped;
}

std::optional<ParquetFile::Batch> ParquetFile::next() {
  while (reader_->group < reader_->group_rows.size()) {
    const size_t group = reader_->group;
    try {
      if (auto batch = reader_->step()) return batch;
    } catch (const std::exception& error) {  // parquet throws where a page is broken
      if (reader_->group == group) return reader_->lose_rest(fit_to_print(error.what()));
    }
  }
  return std::nullopt;
}

}  // namespace sheaf

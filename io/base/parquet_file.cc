#include "io/base/parquet_file.h"

#include <algorithm>
#include <arrow/array.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/key_value_metadata.h>
#include <arrow/visit_array_inline.h>
#include <fcntl.h>
#include <numeric>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

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
  std::string line = shorten_text(replace_invalid(text), 200);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

json cell_value(const arrow::Array& array, int64_t row, int depth);

/// What has no JSON form of its own (dates, decimals) becomes Arrow's text of it.
json other_cell(const arrow::Array& array, int64_t row) {
  const auto scalar = array.GetScalar(row);
  return scalar.ok() ? json((*scalar)->ToString()) : json(nullptr);
}

/// Reads a cell that is not null, by the type of its column.
struct CellReader {
  int64_t row;
  int depth;
  json cell = nullptr;

  template <class Array>
  arrow::Status Visit(const Array& array) {
    using Type = typename Array::TypeClass;
    constexpr bool is_number = arrow::is_integer_type<Type>::value ||
                               std::is_same_v<Type, arrow::FloatType> ||
                               std::is_same_v<Type, arrow::DoubleType>;
    constexpr bool is_text = arrow::is_base_binary_type<Type>::value ||
                             arrow::is_binary_view_like_type<Type>::value ||
                             std::is_same_v<Type, arrow::FixedSizeBinaryType>;
    if constexpr (is_number || arrow::is_boolean_type<Type>::value) {
      cell = array.Value(row);
    } else if constexpr (is_text) {
      cell = std::string(array.GetView(row));
    } else if constexpr (arrow::is_list_type<Type>::value) {
      cell = json::array();
      for (int64_t i = array.value_offset(row), end = i + array.value_length(row); i < end; ++i)
        cell.push_back(cell_value(*array.values(), i, depth + 1));
    } else {
      cell = other_cell(array, row);
    }
    return arrow::Status::OK();
  }

  arrow::Status Visit(const arrow::StructArray& array) {
    cell = json::object();
    for (int i = 0; i < array.num_fields(); ++i)
      cell[replace_invalid(array.struct_type()->field(i)->name())] =
          cell_value(*array.field(i), row, depth + 1);
    return arrow::Status::OK();
  }

  /// An object; where keys are no texts, Arrow's text of it.
  arrow::Status Visit(const arrow::MapArray& array) {
    if (array.keys()->type_id() != arrow::Type::STRING) {
      cell = other_cell(array, row);
      return arrow::Status::OK();
    }
    cell = json::object();
    const auto& keys = static_cast<const arrow::StringArray&>(*array.keys());
    for (int64_t i = array.value_offset(row), end = i + array.value_length(row); i < end; ++i)
      cell[replace_invalid(keys.GetString(i))] = cell_value(*array.items(), i, depth + 1);
    return arrow::Status::OK();
  }

  arrow::Status Visit(const arrow::DictionaryArray& array) {
    cell = cell_value(*array.dictionary(), array.GetValueIndex(row), depth + 1);
    return arrow::Status::OK();
  }

  arrow::Status Visit(const arrow::ExtensionArray& array) {
    cell = cell_value(*array.storage(), row, depth + 1);
    return arrow::Status::OK();
  }
};

json cell_value(const arrow::Array& array, int64_t row, int depth) {
  if (depth > kMostDepth || row < 0 || row >= array.length() || array.IsNull(row)) return nullptr;
  CellReader reader{row, depth};
  return arrow::VisitArrayInline(array, &reader).ok() ? std::move(reader.cell) : other_cell(array, row);
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

  [[noreturn]] void refuse_unread(const std::string& reason) const {
    check_read(path);
    refuse("{}: this is not a readable Parquet file: {}", path, fit_to_print(reason));
  }

  void open() {
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
      refuse_unread(status.message());
    auto built = builder.memory_pool(&pool)->properties(arrow_properties)->Build();
    if (!built.ok()) refuse_unread(built.status().message());
    file = std::move(built).ValueUnsafe();
    for (const auto& field : file->manifest().schema_fields)
      columns.push_back({replace_invalid(field.field->name()), fit_to_print(field.field->type()->ToString()),
                         shape_of(*field.field->type())});
    const auto metadata = file->parquet_reader()->metadata();
    int64_t total = 0;
    for (int i = 0; i < metadata->num_row_groups(); ++i) {
      const int64_t count = metadata->RowGroup(i)->num_rows();
      if (count < 0 || count > kMostRows - total)
        refuse("{}: this is not a readable Parquet file: row group {} claims to have {} rows", path, i,
               count);
      total += count;
      group_rows.push_back(count);
    }
  }

  Batch lose_rest(const std::string& reason) {
    check_read(path);
    Batch lost;
    lost.first_row = done_before + done_in_group + 1;
    lost.rows = group_rows[group] - done_in_group;
    lost.error = fmt::format("rows {}-{} cannot be read: {}", lost.first_row, lost.first_row + lost.rows - 1,
                             fit_to_print(reason));
    next_group();
    return lost;
  }

  void next_group() {
    batches.reset();
    done_before += group_rows[group];
    done_in_group = 0;
    ++group;
  }

  std::optional<Batch> step() {
    if (!batches) {
      auto opened = file->GetRecordBatchReader({static_cast<int>(group)}, leaves);
      if (!opened.ok()) return lose_rest(opened.status().message());
      batches = std::move(opened).ValueUnsafe();
    }
    std::shared_ptr<arrow::RecordBatch> read;
    if (auto status = batches->ReadNext(&read); !status.ok()) return lose_rest(status.message());
    const int64_t left = group_rows[group] - done_in_group;
    if (!read || read->num_rows() == 0) {
      if (left > 0) return lose_rest("the row group ends early");
      next_group();
      return std::nullopt;
    }
    if (auto status = read->Validate(); !status.ok()) return lose_rest(status.message());
    Batch batch;
    batch.first_row = done_before + done_in_group + 1;
    batch.rows = std::min(read->num_rows(), left);
    batch.cells.assign(static_cast<size_t>(batch.rows), json::object());
    for (int c = 0; c < read->num_columns(); ++c) {
      const std::shared_ptr<arrow::Array> array = read->column(c);
      const std::string name = replace_invalid(read->schema()->field(c)->name());
      for (int64_t row = 0; row < batch.rows; ++row)
        batch.cells[static_cast<size_t>(row)][name] = cell_value(*array, row, 0);
    }
    done_in_group += batch.rows;
    return batch;
  }
};

ParquetFile::ParquetFile(const std::string& path) : reader_(std::make_unique<Reader>()) {
  reader_->path = path;
  try {
    reader_->open();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // parquet throws where a footer is broken
    reader_->refuse_unread(error.what());
  }
}

ParquetFile::~ParquetFile() = default;

const std::vector<ParquetFile::Column>& ParquetFile::columns() const {
  return reader_->columns;
}

int64_t ParquetFile::rows() const {
  return std::accumulate(reader_->group_rows.begin(), reader_->group_rows.end(), int64_t{0});
}

std::string ParquetFile::about() const {
  const auto kept = reader_->file->parquet_reader()->metadata()->key_value_metadata();
  return kept ? kept->Get("sheaf").ValueOr("") : std::string();
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
      if (reader_->group == group) return reader_->lose_rest(error.what());
    }
  }
  return std::nullopt;
}

std::optional<ParquetFile::Row> ParquetFile::next_row() {
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

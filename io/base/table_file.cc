#include "io/base/table_file.h"

#include <algorithm>
#include <arrow/extension_type.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/visit_array_inline.h>
#include <numeric>

#include "core/base/error.h"
#include "core/text/json_reader.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/base/store_retry.h"
#include "io/base/table_source.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr int kMostDepth = 8;
constexpr int64_t kMostRows = 1LL << 40;

/// Text out of the file or of Arrow, fit for a message: one line, valid, not long.
std::string fit_to_print(std::string_view text) {
  std::string line = shorten_text(valid_utf8(text), 200);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

/// A cell as JSON; null outside the array and for what lies too deep.
json cell_value(const arrow::Array& array, int64_t row, bool decimals_as_numbers, int depth = 0);

/// What has no JSON form of its own (dates, decimals) becomes Arrow's text of it.
json other_cell(const arrow::Array& array, int64_t row) {
  const auto scalar = array.GetScalar(row);
  return scalar.ok() ? json((*scalar)->ToString()) : json(nullptr);
}

/// Reads a cell that is not null, by the type of its column.
struct CellReader {
  int64_t row;
  bool decimals_as_numbers;
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
        cell.push_back(inner(*array.values(), i));
    } else {
      cell = other_cell(array, row);
      if constexpr (arrow::is_decimal_type<Type>::value)
        if (decimals_as_numbers) cell = read_json(cell.get<std::string>());
    }
    return arrow::Status::OK();
  }

  json inner(const arrow::Array& array, int64_t at) const {
    return cell_value(array, at, decimals_as_numbers, depth + 1);
  }

  arrow::Status Visit(const arrow::StructArray& array) {
    cell = json::object();
    for (int i = 0; i < array.num_fields(); ++i)
      cell[valid_utf8(array.struct_type()->field(i)->name())] = inner(*array.field(i), row);
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
      cell[valid_utf8(keys.GetString(i))] = inner(*array.items(), i);
    return arrow::Status::OK();
  }

  arrow::Status Visit(const arrow::DictionaryArray& array) {
    cell = inner(*array.dictionary(), array.GetValueIndex(row));
    return arrow::Status::OK();
  }

  arrow::Status Visit(const arrow::ExtensionArray& array) {
    cell = inner(*array.storage(), row);
    return arrow::Status::OK();
  }
};

json cell_value(const arrow::Array& array, int64_t row, bool decimals_as_numbers, int depth) {
  if (depth > kMostDepth || row < 0 || row >= array.length() || array.IsNull(row)) return nullptr;
  CellReader reader{row, decimals_as_numbers, depth};
  return arrow::VisitArrayInline(array, &reader).ok() ? std::move(reader.cell) : other_cell(array, row);
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

void TableFile::open() {
  try {
    source_->open(path_);
    const std::shared_ptr<arrow::Schema> schema = source_->schema();
    for (const auto& field : schema->fields())
      columns_.push_back(
          {valid_utf8(field->name()), fit_to_print(field->type()->ToString()), shape_of(*field->type())});
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
  batch.cells.assign(static_cast<size_t>(batch.rows), json::object());
  for (int c = 0; c < read->num_columns(); ++c) {
    const std::shared_ptr<arrow::Array> array = read->column(c);
    const std::string name = valid_utf8(read->schema()->field(c)->name());
    for (int64_t row = 0; row < batch.rows; ++row)
      batch.cells[static_cast<size_t>(row)][name] = cell_value(*array, row, decimals_as_numbers_);
  }
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

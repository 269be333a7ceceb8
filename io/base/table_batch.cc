#include "io/base/table_batch.h"

#include <algorithm>
#include <arrow/extension_type.h>
#include <arrow/scalar.h>
#include <arrow/type_traits.h>
#include <arrow/visit_array_inline.h>

#include "core/text/json_reader.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr int kMostDepth = 8;

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

std::string fit_to_print(std::string_view text) {
  std::string line = shorten_text(valid_utf8(text), 200);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::vector<TableFile::Column> describe_columns(const arrow::Schema& schema) {
  std::vector<TableFile::Column> columns;
  for (const auto& field : schema.fields())
    columns.push_back(
        {valid_utf8(field->name()), fit_to_print(field->type()->ToString()), shape_of(*field->type())});
  return columns;
}

std::vector<json> read_cells(const arrow::RecordBatch& batch, int64_t rows, bool decimals_as_numbers) {
  std::vector<json> cells(static_cast<size_t>(rows), json::object());
  for (int c = 0; c < batch.num_columns(); ++c) {
    const std::shared_ptr<arrow::Array> array = batch.column(c);
    const std::string name = valid_utf8(batch.schema()->field(c)->name());
    for (int64_t row = 0; row < rows; ++row)
      cells[static_cast<size_t>(row)][name] = cell_value(*array, row, decimals_as_numbers);
  }
  return cells;
}

}  // namespace sheaf

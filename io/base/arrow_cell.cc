#include "io/base/arrow_cell.h"

#include <arrow/array.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr int kMostDepth = 8;

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
    cells[replace_invalid(record.struct_type()->field(i)->name())] =
        cell_value(*record.field(i), row, depth + 1);
  return cells;
}

/// An object; where keys are no texts, Arrow's text of it.
json map_cell(const arrow::Array& array, int64_t row, int depth) {
  const auto& map = static_cast<const arrow::MapArray&>(array);
  if (map.keys()->type_id() != arrow::Type::STRING) return other_cell(array, row);
  json cells = json::object();
  for (int64_t i = map.value_offset(row); i < map.value_offset(row) + map.value_length(row); ++i)
    cells[replace_invalid(static_cast<const arrow::StringArray&>(*map.keys()).GetString(i))] =
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

}  // namespace

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

}  // namespace sheaf

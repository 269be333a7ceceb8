#pragma once
#include <arrow/builder.h>
#include <arrow/util/decimal.h>
#include <charconv>
#include <chrono>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace sheaf {

inline void check(const arrow::Status& status) {
  if (!status.ok()) fail("a table cannot be written: {}", status.ToString());
}

template <class Value>
Value check(arrow::Result<Value> result) {
  check(result.status());
  return std::move(result).ValueUnsafe();
}

// Cells for the builders of a TableWriter. The builder is of the type that the function's name says.

inline void append_null(arrow::ArrayBuilder& cell) {
  check(cell.AppendNull());
}

inline void append_text(arrow::ArrayBuilder& cell, std::string_view text) {
  check(static_cast<arrow::StringBuilder&>(cell).Append(text));
}

inline void append_integer(arrow::ArrayBuilder& cell, int64_t integer) {
  check(static_cast<arrow::Int64Builder&>(cell).Append(integer));
}

inline void append_number(arrow::ArrayBuilder& cell, double number) {
  check(static_cast<arrow::DoubleBuilder&>(cell).Append(number));
}

/// A number rounded to the digits that the column has; null where it has too many before the point.
inline void append_decimal(arrow::ArrayBuilder& cell, double number) {
  const auto& type = static_cast<const arrow::Decimal128Type&>(*cell.type());
  const auto decimal = arrow::Decimal128::FromReal(number, type.precision(), type.scale());
  if (!decimal.ok()) return append_null(cell);
  check(static_cast<arrow::Decimal128Builder&>(cell).Append(*decimal));
}

inline void append_boolean(arrow::ArrayBuilder& cell, bool value) {
  check(static_cast<arrow::BooleanBuilder&>(cell).Append(value));
}

/// A day as "2026-03-01"; what is none is null.
inline void append_date(arrow::ArrayBuilder& cell, std::string_view iso) {
  const auto number = [&](size_t at, size_t digits) {
    int value = -1;
    const char* const begin = iso.data() + at;
    const auto [end, error] = std::from_chars(begin, begin + digits, value);
    return error == std::errc() && end == begin + digits ? value : -1;
  };
  if (iso.size() != 10 || iso[4] != '-' || iso[7] != '-') return append_null(cell);
  const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
  if (year < 0 || month < 0 || day < 0) return append_null(cell);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return append_null(cell);
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  check(static_cast<arrow::Date32Builder&>(cell).Append(static_cast<int32_t>(days)));
}

/// Begins a list; its entries go where the result says.
inline arrow::ArrayBuilder& append_list(arrow::ArrayBuilder& cell) {
  auto& list = static_cast<arrow::ListBuilder&>(cell);
  check(list.Append());
  return *list.value_builder();
}

inline void append_integers(arrow::ArrayBuilder& cell, const std::vector<int32_t>& integers) {
  auto& entries = static_cast<arrow::Int32Builder&>(append_list(cell));
  check(entries.AppendValues(integers));
}

/// Begins a map; its keys and values go into the builders that it has.
inline arrow::MapBuilder& append_map(arrow::ArrayBuilder& cell) {
  auto& map = static_cast<arrow::MapBuilder&>(cell);
  check(map.Append());
  return map;
}

/// Begins a struct; each of its fields gets a cell.
inline arrow::StructBuilder& append_struct(arrow::ArrayBuilder& cell) {
  auto& record = static_cast<arrow::StructBuilder&>(cell);
  check(record.Append());
  return record;
}

}  // namespace sheaf

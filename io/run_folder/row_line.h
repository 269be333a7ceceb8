#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/task/row.h"

namespace sheaf {

/// A row as a line of JSON, without its newline. Text that is not UTF-8 has replacement characters.
std::string row_line(const Row& row);

/// The row that a line tells of; nothing where row_line() did not write it.
std::optional<Row> read_row(std::string_view line);

}  // namespace sheaf

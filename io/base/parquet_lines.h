#pragma once
#include <string>
#include <vector>

#include "io/base/table_writer.h"

namespace sheaf {

/// Writes the objects of a file of JSON lines as a Parquet file, whose columns are named as their members.
void write_parquet_lines(const std::string& lines, const std::vector<TableColumn>& columns,
                         OutputFile& target);

}  // namespace sheaf

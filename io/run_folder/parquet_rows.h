#pragma once
#include <memory>
#include <vector>

#include "io/run_folder/row_columns.h"
#include "io/run_folder/rows_writer.h"

namespace sheaf {

/// Writes rows as a Parquet file. `target` must outlive the writer.
std::unique_ptr<RowsWriter> write_parquet_rows(const std::vector<RowColumn>& columns, OutputFile& target);

}  // namespace sheaf

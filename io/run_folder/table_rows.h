#pragma once
#include <memory>
#include <vector>

#include "core/job/words.h"
#include "io/run_folder/row_columns.h"
#include "io/run_folder/rows_writer.h"

namespace sheaf {

/// Whether rows of the format are a table; otherwise they are lines.
bool is_table(OutputFormat format);

/// Writes rows as a table. `target` must outlive the writer.
std::unique_ptr<RowsWriter> write_table_rows(OutputFormat format, const std::vector<RowColumn>& columns,
                                             OutputFile& target);

}  // namespace sheaf

#pragma once
#include <arrow/record_batch.h>
#include <string>
#include <vector>

#include "io/base/table_file.h"

// What Arrow's batches hold, as JSON.

namespace sheaf {

/// Text out of a table or of Arrow, fit for a message: one line, valid, not long.
std::string fit_to_print(std::string_view text);

std::vector<TableFile::Column> describe_columns(const arrow::Schema& schema);

/// The first `rows` rows of a batch that was validated: one object a row, column → value. Decimals are texts
/// with all their digits, or numbers.
std::vector<nlohmann::json> read_cells(const arrow::RecordBatch& batch, int64_t rows,
                                       bool decimals_as_numbers = false);

}  // namespace sheaf

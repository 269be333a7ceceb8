#pragma once
#include <vector>

#include "core/job/job.h"
#include "core/task/outcome.h"
#include "core/task/row.h"
#include "core/task/task.h"

namespace sheaf {

/// The row of a record as it is written: what its task makes of the answers, those of a split document's
/// parts brought together, and what else the job asks for.
Row record_row(const Task& task, const Record& record, const Outcome& outcome, const Job::Output& output);

/// Brings the rows of a split document's parts together. An answer or value is that of the part which found
/// it with the highest mean log-probability a token; lists are joined. `scores`: per part and answer.
Row merge_part_rows(const std::vector<Row>& rows, const std::vector<std::vector<double>>& scores);

}  // namespace sheaf

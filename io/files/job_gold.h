#pragma once
#include <string>
#include <vector>

#include "core/job/job.h"
#include "io/datasets/gold.h"

namespace sheaf {

/// The right answers that stand in columns of a job's own corpus, JSONL or Parquet; an empty or null cell
/// says that there is none. `given`: extract: ATTRIBUTE=COLUMN, the name of an attribute that is a column
/// too, or a column of objects {attribute: value}; none: every column that is named like an attribute. ask
/// with input.question: one column of a text or a list of accepted ones.
std::vector<GoldAnswer> read_job_gold(Job job, const std::vector<std::string>& given);

}  // namespace sheaf

#pragma once
#include <optional>
#include <string>

#include "core/job/job.h"
#include "core/task/examples.h"
#include "core/task/schema.h"

namespace sheaf {

/// The examples of `task.examples`, chosen; none where the job names no file. Rows have the job's own
/// columns, or "category" and "document", and "gold". A row whose category the schema lacks, or that gives no
/// attribute of its category a value, is passed over. Refuses a broken row with its place, and a file without
/// examples.
Examples read_examples(const Job& job, const Schema& schema, int32_t positions);

/// What to tell the user of categories without examples; empty where all have some.
std::string missing_examples(const Job& job, const Schema& schema, const Examples& examples);

}  // namespace sheaf

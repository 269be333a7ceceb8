#pragma once
#include <string>

#include "core/job/job.h"
#include "core/task/schema.h"

namespace sheaf {

/// What to tell the user where none of the first records has a category of the schema, as with a wrong
/// input.category: which ones were seen. Empty where one has, and where the corpus cannot be opened, which
/// whoever opens it for its records says better.
std::string category_notice(const Job& job, const Schema& schema);

}  // namespace sheaf

#pragma once
#include <functional>
#include <string>

#include "core/task/row.h"
#include "core/task/schema.h"
#include "io/run_folder/manifest.h"

namespace sheaf {

/// Hands over the rows of a finished run of an extract job in input order, from JSON lines or Parquet.
/// Refuses a file that is missing, was changed or holds what sheaf did not write. `schema`: of the run; a
/// table has every category's attributes in every row.
void read_rows(const std::string& folder, const Manifest& manifest, const Schema& schema,
               const std::function<void(Row&&)>& take);

}  // namespace sheaf

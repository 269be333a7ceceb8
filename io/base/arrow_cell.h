#pragma once
#include <arrow/type_fwd.h>
#include <nlohmann/json.hpp>

namespace sheaf {

/// A cell as JSON; null outside the array and for what lies too deep.
nlohmann::json cell_value(const arrow::Array& array, int64_t row, int depth = 0);

}  // namespace sheaf

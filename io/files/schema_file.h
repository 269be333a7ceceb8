#pragma once
#include <string>

#include "core/task/schema.h"

namespace sheaf {

/// Reads a schema file; errors carry file and line.
Schema read_schema(const std::string& path);

}  // namespace sheaf

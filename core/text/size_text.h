#pragma once
#include <cstdint>
#include <string>

namespace sheaf {

/// "0.49 GB", "31.20 MB", "4.1 kB": in the largest unit that shows something of it.
std::string size_text(int64_t bytes);

}  // namespace sheaf

#pragma once
#include <string>

namespace sheaf {

/// $XDG_CACHE_HOME/sheaf or ~/.cache/sheaf; empty where neither is set to an absolute path.
std::string user_cache();

}  // namespace sheaf

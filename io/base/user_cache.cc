#include "io/base/user_cache.h"

#include <cstdlib>

namespace sheaf {

std::string user_cache() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    return std::string(cache) + "/sheaf";
  if (const char* home = std::getenv("HOME"); home && *home == '/')
    return std::string(home) + "/.cache/sheaf";
  return {};
}

}  // namespace sheaf

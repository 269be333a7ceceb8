#pragma once
#include <cstdint>

namespace sheaf {

/// How the scores of several chains become one row of scores; `core/engine/fuse_chains.cc` defines them.
enum class Aggregate : uint8_t { max, mixture, product };

}  // namespace sheaf

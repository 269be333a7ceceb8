#pragma once
#include <cstdint>

namespace sheaf {

/// How the scores of several experts become one row of scores; `core/engine/fuse_experts.cc` defines them.
enum class Aggregate : uint8_t { max, mixture, product };

}  // namespace sheaf

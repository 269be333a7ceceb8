#pragma once
#include <cstddef>

namespace sheaf {

/// The largest single request to operator new since the last call, by any thread of this test program.
size_t take_largest_allocation();

}  // namespace sheaf

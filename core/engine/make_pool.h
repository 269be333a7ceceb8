#pragma once
#include <cstdint>

#include "core/engine/backend.h"

namespace sheaf {

/// Makes the backend's key/value pool as asked, or as large as memory allows; returns its pages.
int32_t make_pool(Backend& backend, int32_t pages, int32_t page_size);

}  // namespace sheaf

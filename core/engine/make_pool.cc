#include "core/engine/make_pool.h"

namespace sheaf {

int32_t make_pool(Backend& backend, int32_t pages, int32_t page_size) {
  while (true) {
    try {
      backend.allocate_kv(pages, page_size);
      return pages;
    } catch (const OutOfMemory&) {
      if (pages < 8) throw;
      pages -= pages / 8;
    }
  }
}

}  // namespace sheaf

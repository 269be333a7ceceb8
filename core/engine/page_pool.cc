#include "core/engine/page_pool.h"

#include "core/base/error.h"

namespace sheaf {

PagePool::PagePool(int32_t pages, int32_t page_size) : page_size_(page_size) {
  if (pages < 1 || page_size < 1) fail("a key/value pool needs at least one page");
  taken_.assign(static_cast<size_t>(pages), false);
  for (int32_t page = pages - 1; page >= 0; --page) free_.push_back(page);
}

void PagePool::grow(int32_t pages) {
  std::vector<int32_t> added;
  for (int32_t page = pages - 1; page >= total(); --page) added.push_back(page);
  free_.insert(free_.begin(), added.begin(), added.end());
  taken_.resize(static_cast<size_t>(pages), false);
}

int32_t PagePool::take() {
  if (free_.empty()) fail("the key/value pool is empty; admission should have prevented this");
  const int32_t page = free_.back();
  free_.pop_back();
  taken_[static_cast<size_t>(page)] = true;
  return page;
}

void PagePool::give_back(int32_t page) {
  if (!taken_[static_cast<size_t>(page)]) fail("page {} is returned twice", page);
  taken_[static_cast<size_t>(page)] = false;
  free_.push_back(page);
}

}  // namespace sheaf

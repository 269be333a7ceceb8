#pragma once
#include <cstdint>
#include <vector>

namespace sheaf {

/// Hands out the page numbers of the key/value pool. Who holds a page, and how often it is shared, is
/// Residents' business.
class PagePool {
 public:
  PagePool(int32_t pages, int32_t page_size);

  int32_t page_size() const { return page_size_; }
  int32_t total() const { return static_cast<int32_t>(taken_.size()); }
  int32_t free() const { return static_cast<int32_t>(free_.size()); }
  int32_t pages_for(int64_t tokens) const {
    return static_cast<int32_t>((tokens + page_size_ - 1) / page_size_);
  }

  int32_t take();  ///< fails when none is free
  void grow(int32_t pages);
  void give_back(int32_t page);

 private:
  int32_t page_size_;
  std::vector<bool> taken_;
  std::vector<int32_t> free_;  ///< last in, first out: a page just freed is warm in cache
};

}  // namespace sheaf

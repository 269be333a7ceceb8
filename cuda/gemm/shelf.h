#pragma once
#include <cstddef>
#include <cstdint>

namespace sheaf::cuda {

/// Gives out arrays of `count` values one after the other.
class Shelf {
 public:
  Shelf(std::byte* memory, int64_t count) : memory_(memory), count_(count) {}
  template <class T>
  void take(T*& array) {
    array = reinterpret_cast<T*>(memory_ + used_);
    used_ += (count_ * static_cast<int64_t>(sizeof(T)) + 127) / 128 * 128;
  }
  int64_t used() const { return used_; }

 private:
  std::byte* memory_;
  int64_t count_, used_ = 0;
};

}  // namespace sheaf::cuda

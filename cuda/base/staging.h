#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "cuda/base/device_memory.h"

namespace sheaf::cuda {

/// Host arrays of a step packed into one pinned block and copied at once.
class Staging {
 public:
  void clear() { used_ = 0; }
  template <class T>
  int64_t add(std::span<const T> values) {
    const int64_t at = (used_ + 15) / 16 * 16;
    const auto bytes = static_cast<int64_t>(values.size_bytes());
    if (at + bytes > host_.size()) {
      PinnedMemory<std::byte> larger(std::max(2 * (at + bytes), int64_t{1} << 20));
      if (used_ > 0) std::memcpy(larger.data(), host_.data(), static_cast<size_t>(used_));
      host_ = std::move(larger);
    }
    if (bytes > 0) std::memcpy(host_.data() + at, values.data(), static_cast<size_t>(bytes));
    used_ = at + bytes;
    return at;
  }
  /// Changes what was added at `offset`.
  template <class T>
  void put(int64_t offset, const T& value) {
    std::memcpy(host_.data() + offset, &value, sizeof(T));
  }
  int64_t capacity() const { return host_.size(); }
  void send(std::byte* to, cudaStream_t stream) {
    check(cudaMemcpyAsync(to, host_.data(), static_cast<size_t>(used_), cudaMemcpyHostToDevice, stream),
          "sending a step");
  }

 private:
  PinnedMemory<std::byte> host_;
  int64_t used_ = 0;
};

}  // namespace sheaf::cuda

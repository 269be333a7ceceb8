#include "cuda/base/pinned_blocks.h"

#include <algorithm>
#include <bit>

#include "cuda/base/device_memory.h"

namespace sheaf::cuda {
namespace {

constexpr int64_t kLeast = 1 << 20;
constexpr int64_t kMostFree = int64_t{1} << 30;

/// The next of four sizes between powers of two, so that blocks fit again.
int64_t rounded(int64_t bytes) {
  const auto step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max(bytes, kLeast)))) / 4;
  return (std::max(bytes, kLeast) + step - 1) / step * step;
}

}  // namespace

PinnedBlocks::~PinnedBlocks() {
  for (const auto& [_, block] : free_) cudaFreeHost(block);
}

std::shared_ptr<std::byte> PinnedBlocks::take(int64_t bytes) {
  const int64_t size = rounded(bytes);
  void* block = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = free_.find(size); at != free_.end()) {
      block = at->second;
      free_bytes_ -= size;
      free_.erase(at);
    }
  }
  if (!block && cudaHostAlloc(&block, static_cast<size_t>(size), cudaHostAllocPortable) != cudaSuccess) {
    cudaGetLastError();  // or a later check would find it
    throw OutOfMemory(fmt::format("CUDA: {} MB of pinned memory cannot be allocated", size / 1000000));
  }
  return {static_cast<std::byte*>(block),
          [self = shared_from_this(), size](std::byte* data) { self->give_back(data, size); }};
}

void PinnedBlocks::give_back(std::byte* block, int64_t size) {
  {
    const std::lock_guard lock(mutex_);
    if (free_bytes_ + size <= kMostFree) {
      free_.emplace(size, block);
      free_bytes_ += size;
      return;
    }
  }
  cudaFreeHost(block);
}

}  // namespace sheaf::cuda

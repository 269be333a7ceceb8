#include "cuda/base/pinned_blocks.h"

#include <algorithm>
#include <bit>
#include <sys/mman.h>

#include "cuda/base/device_memory.h"

namespace sheaf::cuda {
namespace {

constexpr int64_t kLeast = 8 << 20;  // so that sizes are multiples of large pages
constexpr int64_t kMostFree = int64_t{1} << 30;

/// The next of four sizes between powers of two, so that blocks fit again.
int64_t rounded(int64_t bytes) {
  const auto step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max(bytes, kLeast)))) / 4;
  return (std::max(bytes, kLeast) + step - 1) / step * step;
}

/// cudaHostAlloc would take small pages one after the other, under a lock: 2 GB a second. Large pages that
/// the calling thread touches first are pinned in no time.
std::byte* pinned(int64_t size) {
  const auto bytes = static_cast<size_t>(size);
  void* block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED)
    throw OutOfMemory(fmt::format("{} MB of host memory cannot be allocated", size / 1000000));
  ::madvise(block, bytes, MADV_HUGEPAGE);  // which the machine may refuse
  for (size_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(block)[at] = 0;
  if (cudaHostRegister(block, bytes, cudaHostRegisterPortable) != cudaSuccess) {
    cudaGetLastError();  // or a later check would find it
    ::munmap(block, bytes);
    throw OutOfMemory(fmt::format("CUDA: {} MB of host memory cannot be pinned", size / 1000000));
  }
  return static_cast<std::byte*>(block);
}

void release(std::byte* block, int64_t size) {
  cudaHostUnregister(block);
  ::munmap(block, static_cast<size_t>(size));
}

}  // namespace

PinnedBlocks::~PinnedBlocks() {
  for (const auto& [size, block] : free_) release(block, size);
}

std::shared_ptr<std::byte> PinnedBlocks::take(int64_t bytes) {
  const int64_t size = rounded(bytes);
  std::byte* block = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = free_.find(size); at != free_.end()) {
      block = at->second;
      free_bytes_ -= size;
      free_.erase(at);
    }
  }
  if (!block) block = pinned(size);
  return {block, [self = shared_from_this(), size](std::byte* data) { self->give_back(data, size); }};
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
  release(block, size);
}

}  // namespace sheaf::cuda

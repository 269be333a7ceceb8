#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace sheaf::cuda {

/// Host memory that every device copies from and to at full speed. To pin some takes longer than to fill it,
/// so blocks are used again. Any thread may take and let go.
class PinnedBlocks : public std::enable_shared_from_this<PinnedBlocks> {
 public:
  PinnedBlocks() = default;
  PinnedBlocks(const PinnedBlocks&) = delete;
  PinnedBlocks& operator=(const PinnedBlocks&) = delete;
  ~PinnedBlocks();

  /// Throws OutOfMemory.
  std::shared_ptr<std::byte> take(int64_t bytes);

 private:
  void give_back(std::byte* block, int64_t size);

  std::mutex mutex_;
  std::multimap<int64_t, std::byte*> free_;  ///< by size
  int64_t free_bytes_ = 0;
};

}  // namespace sheaf::cuda

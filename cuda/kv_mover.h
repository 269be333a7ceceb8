#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/engine/backend.h"
#include "cuda/base/device_memory.h"
#include "cuda/loaded_model.h"
#include "cuda/ops/ops.h"

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

/// Moves keys and values between a pool and the host, beside the steps in flight, which must not use those
/// slots.
///
/// The bytes: pieces of a few slots (as many as fit 4 MB), in each for every array of the pool [heads, slots
/// of the piece]; rounded, all numbers and then all scales. The device rounds and expands them.
class KvMover {
 public:
  explicit KvMover(const LoadedModel& model) : model_(model) {}

  int64_t slot_bytes(KvForm form) const;
  void read(std::span<const int32_t> slots, std::span<std::byte> to, KvForm form);
  /// For all steps that are started afterwards.
  void write(std::span<const int32_t> slots, std::span<const std::byte> from, KvForm form);
  std::shared_ptr<std::byte> host_memory(int64_t bytes) { return blocks_->take(bytes); }

 private:
  /// Pieces take turns, so that one is on its way while the other is packed.
  struct Turn {
    Stream stream;
    DeviceMemory<std::byte> packed;
  };
  std::vector<SlotVectors> arrays(KvForm form) const;
  template <class Move>
  void each_piece(std::span<const int32_t> slots, KvForm form, Move&& move);
  template <class Pack>
  void each_array(const SlotList& list, KvForm form, const Turn& turn, Pack&& pack) const;
  void wait(const char* what) const;
  /// Waits for what was begun where the rest cannot be: the caller's memory may then go.
  template <class Move>
  void move_all(const char* what, Move&& move);

  const LoadedModel& model_;
  std::array<Turn, 2> turns_;
  std::shared_ptr<PinnedBlocks> blocks_ = std::make_shared<PinnedBlocks>();
};

}  // namespace sheaf::cuda

#include "cuda/kv_mover.h"

#include <algorithm>
#include <bit>
#include <sys/mman.h>

#include "core/base/error.h"
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

constexpr int64_t kPieceBytes = 4 << 20;

/// Of one of the array's vectors outside of the pool.
int64_t bytes_of(const SlotVectors& array, KvForm form) {
  return form == KvForm::computed ? array.bytes : array.bytes / int64_t{sizeof(f16)} + int64_t{sizeof(float)};
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

/// All that the pool holds of a slot.
std::vector<SlotVectors> KvMover::arrays(KvForm form) const {
  const KvPool& pool = model_.pool;
  const ModelConfig& config = model_.config;
  const int64_t slots = model_.layout.slots, heads = int64_t{2} * config.layer_count() * config.kv_heads;
  const int64_t dim = model_.layout.padded_dim;
  const auto of = [&](auto& memory, int64_t count, int64_t width) {
    return SlotVectors{reinterpret_cast<std::byte*>(memory.data()), count, slots,
                       width * static_cast<int64_t>(sizeof(*memory.data()))};
  };
  if (model_.narrow_keys() && form == KvForm::rounded) fail("keys and values in fp8 are not rounded again");
  if (!model_.narrow_keys()) return {of(pool.wide, heads, dim)};
  std::vector<SlotVectors> all = {of(pool.narrow_keys, heads / 2, dim),
                                  of(pool.narrow_values, heads / 2, dim)};
  all.back().narrow_values = true;
  if (pool.turns.size() > 0) all.push_back(of(pool.turns, 1, config.rotary_dim));
  return all;
}

int64_t KvMover::slot_bytes(KvForm form) const {
  int64_t bytes = 0;
  for (const SlotVectors& array : arrays(form)) bytes += array.heads * bytes_of(array, form);
  return bytes;
}

/// Calls with the slots of each piece, where its bytes begin, how many they are, and whose turn it is.
template <class Move>
void KvMover::each_piece(std::span<const int32_t> slots, KvForm form, Move&& move) {
  const int64_t each = slot_bytes(form);
  const int64_t most = std::clamp<int64_t>(kPieceBytes / each, 1, kMostSlots);
  for (Turn& turn : turns_) turn.packed.grow(most * each);
  for (int64_t first = 0; first < std::ssize(slots); first += most) {
    SlotList list;
    list.count = static_cast<int32_t>(std::min(most, std::ssize(slots) - first));
    std::copy_n(slots.begin() + first, list.count, list.numbers);
    move(list, first * each, static_cast<size_t>(list.count * each),
         turns_[static_cast<size_t>(first / most) % turns_.size()]);
  }
}

void KvMover::wait(const char* what) const {
  for (const Turn& turn : turns_) check(cudaStreamSynchronize(turn.stream.get()), what);
}

template <class Move>
void KvMover::move_all(const char* what, Move&& move) {
  try {
    move();
  } catch (...) {
    for (const Turn& turn : turns_) cudaStreamSynchronize(turn.stream.get());
    throw;
  }
  wait(what);
}

/// Packs the vectors of a piece into the memory of its turn, or takes them out of it.
template <class Pack>
void KvMover::each_array(const SlotList& list, KvForm form, const Turn& turn, Pack&& pack) const {
  std::byte* packed = turn.packed.data();
  for (const SlotVectors& array : arrays(form)) {
    pack(list, array, form == KvForm::rounded, packed, turn.stream.get());
    packed += array.heads * list.count * bytes_of(array, form);
  }
}

void KvMover::read(std::span<const int32_t> slots, std::span<std::byte> to, KvForm form) {
  constexpr auto what = "reading keys and values";
  move_all(what, [&] {
    each_piece(slots, form, [&](const SlotList& list, int64_t at, size_t bytes, Turn& turn) {
      each_array(list, form, turn, pack_slots);
      check(cudaMemcpyAsync(to.data() + at, turn.packed.data(), bytes, cudaMemcpyDeviceToHost,
                            turn.stream.get()),
            what);
    });
  });
}

void KvMover::write(std::span<const int32_t> slots, std::span<const std::byte> from, KvForm form) {
  constexpr auto what = "writing keys and values";
  // Once all is waited for the bytes may go, and whatever is started from there on finds them in the pool.
  move_all(what, [&] {
    each_piece(slots, form, [&](const SlotList& list, int64_t at, size_t bytes, Turn& turn) {
      check(cudaMemcpyAsync(turn.packed.data(), from.data() + at, bytes, cudaMemcpyHostToDevice,
                            turn.stream.get()),
            what);
      each_array(list, form, turn, unpack_slots);
    });
  });
}

}  // namespace sheaf::cuda

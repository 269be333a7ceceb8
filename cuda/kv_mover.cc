#include "cuda/kv_mover.h"

#include <algorithm>

#include "core/base/error.h"

namespace sheaf::cuda {
namespace {

constexpr int64_t kPieceBytes = 4 << 20;

/// Of one of the array's vectors outside of the pool.
int64_t bytes_of(const SlotVectors& array, KvForm form) {
  return form == KvForm::computed ? array.bytes : array.bytes / int64_t{sizeof(f16)} + int64_t{sizeof(float)};
}

}  // namespace

/// All that the pool holds of a slot.
std::vector<SlotVectors> KvMover::arrays(KvForm form) const {
  const KvPool& pool = model_.pool;
  const ModelConfig& config = model_.config;
  const int64_t slots = model_.layout.slots, heads = int64_t{2} * config.layers * config.kv_heads;
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
  each_piece(slots, form, [&](const SlotList& list, int64_t at, size_t bytes, Turn& turn) {
    each_array(list, form, turn, pack_slots);
    check(
        cudaMemcpyAsync(to.data() + at, turn.packed.data(), bytes, cudaMemcpyDeviceToHost, turn.stream.get()),
        what);
  });
  wait(what);
}

void KvMover::write(std::span<const int32_t> slots, std::span<const std::byte> from, KvForm form) {
  constexpr auto what = "writing keys and values";
  each_piece(slots, form, [&](const SlotList& list, int64_t at, size_t bytes, Turn& turn) {
    check(cudaMemcpyAsync(turn.packed.data(), from.data() + at, bytes, cudaMemcpyHostToDevice,
                          turn.stream.get()),
          what);
    each_array(list, form, turn, unpack_slots);
  });
  // The bytes may go now, and whatever is started from here on finds them in the pool.
  wait(what);
}

}  // namespace sheaf::cuda

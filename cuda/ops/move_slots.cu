#include "cuda/ops/ops.h"

namespace sheaf::cuda {
namespace {

constexpr int kThreads = 256, kBlocks = 264;

template <class Unit, bool Out>
__global__ void move_slots_kernel(SlotList slots, SlotVectors vectors, std::byte* packed) {
  const auto width = static_cast<int64_t>(vectors.bytes / sizeof(Unit));
  const int64_t total = vectors.heads * slots.count * width;
  auto* pool = reinterpret_cast<Unit*>(vectors.data);
  auto* list = reinterpret_cast<Unit*>(packed);
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < total;
       i += int64_t{kThreads} * gridDim.x) {
    const int64_t vector = i / width;
    const int64_t head = vector / slots.count;
    Unit& there = pool[(head * vectors.slots + slots.numbers[vector % slots.count]) * width + i % width];
    if (Out)
      list[i] = there;
    else
      there = list[i];
  }
}

template <bool Out>
void move(const SlotList& slots, const SlotVectors& vectors, std::byte* packed, cudaStream_t stream) {
  if (vectors.bytes % sizeof(uint4) == 0 && reinterpret_cast<uintptr_t>(packed) % sizeof(uint4) == 0)
    move_slots_kernel<uint4, Out><<<kBlocks, kThreads, 0, stream>>>(slots, vectors, packed);
  else
    move_slots_kernel<uint32_t, Out><<<kBlocks, kThreads, 0, stream>>>(slots, vectors, packed);
}

}  // namespace

void pack_slots(const SlotList& slots, const SlotVectors& vectors, std::byte* packed, cudaStream_t stream) {
  move<true>(slots, vectors, packed, stream);
}

void unpack_slots(const SlotList& slots, const SlotVectors& vectors, std::byte* packed, cudaStream_t stream) {
  move<false>(slots, vectors, packed, stream);
}

}  // namespace sheaf::cuda

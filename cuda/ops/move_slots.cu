#include "cuda/base/heads.h"
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

/// A warp for each vector, four of its numbers for each lane at a time.
///
/// It moves 3 bytes a number, 1 of them over PCIe: at 50 GB/s there, the device's memory has 30 times the
/// time it needs.
template <bool Out>
__global__ void round_slots_kernel(SlotList slots, SlotVectors vectors, std::byte* packed) {
  const auto width = static_cast<int>(vectors.bytes / sizeof(f16));
  const int64_t total = vectors.heads * slots.count;
  auto* scales = reinterpret_cast<float*>(packed + total * width);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int64_t i = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / 32; i < total;
       i += int64_t{kThreads} * gridDim.x / 32) {
    const int64_t slot = i / slots.count * vectors.slots + slots.numbers[i % slots.count];
    auto* there = reinterpret_cast<f16*>(vectors.data) + slot * width;
    auto* numbers = reinterpret_cast<int8_t*>(packed) + i * width;
    if (!Out) {
      const float scale = scales[i];
      for (int at = 4 * lane; at < width; at += 128) {
        const char4 four = *reinterpret_cast<const char4*>(numbers + at);
        auto* to = reinterpret_cast<__half2*>(there + at);
        to[0] = __floats2half2_rn(scale * four.x, scale * four.y);
        to[1] = __floats2half2_rn(scale * four.z, scale * four.w);
      }
      continue;
    }
    float top = 0, sum = 0;  // the sum is NaN where a number is, which the largest would not tell
    for (int at = lane; at < width; at += 32) {
      const float x = fabsf(__half2float(there[at]));
      top = fmaxf(top, x);
      sum += x;
    }
    for (int other = 16; other > 0; other /= 2) {
      top = fmaxf(top, __shfl_xor_sync(~0u, top, other));
      sum += __shfl_xor_sync(~0u, sum, other);
    }
    const float scale = isfinite(sum) ? top / 127 : NAN;
    if (lane == 0) scales[i] = scale;
    const float inverse = top > 0 && isfinite(127 / top) ? 127 / top : 0.0f;
    const auto round = [&](f16 x) {
      return static_cast<signed char>(__float2int_rn(__half2float(x) * inverse));
    };
    for (int at = 4 * lane; at < width; at += 128)
      *reinterpret_cast<char4*>(numbers + at) =
          make_char4(round(there[at]), round(there[at + 1]), round(there[at + 2]), round(there[at + 3]));
  }
}

/// The same of values in e4m3, a byte at a time.
template <bool Out>
__global__ void move_values_kernel(SlotList slots, SlotVectors vectors, std::byte* packed) {
  const int64_t total = vectors.heads * slots.count * vectors.bytes;
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < total;
       i += int64_t{kThreads} * gridDim.x) {
    const int64_t vector = i / vectors.bytes, d = i % vectors.bytes;
    const int64_t slot = vector / slots.count * vectors.slots + slots.numbers[vector % slots.count];
    const int64_t page = slot - slot % kNarrowPage;
    std::byte& there = vectors.data[page * vectors.bytes + d * kNarrowPage + narrow_place(slot)];
    if (Out)
      packed[i] = there;
    else
      there = packed[i];
  }
}

template <bool Out>
void move(const SlotList& slots, const SlotVectors& vectors, bool rounded, std::byte* packed,
          cudaStream_t stream) {
  if (rounded)
    round_slots_kernel<Out><<<kBlocks, kThreads, 0, stream>>>(slots, vectors, packed);
  else if (vectors.narrow_values)
    move_values_kernel<Out><<<kBlocks, kThreads, 0, stream>>>(slots, vectors, packed);
  else if (vectors.bytes % sizeof(uint4) == 0 && reinterpret_cast<uintptr_t>(packed) % sizeof(uint4) == 0)
    move_slots_kernel<uint4, Out><<<kBlocks, kThreads, 0, stream>>>(slots, vectors, packed);
  else
    move_slots_kernel<uint32_t, Out><<<kBlocks, kThreads, 0, stream>>>(slots, vectors, packed);
}

}  // namespace

void pack_slots(const SlotList& slots, const SlotVectors& vectors, bool rounded, std::byte* packed,
                cudaStream_t stream) {
  move<true>(slots, vectors, rounded, packed, stream);
}

void unpack_slots(const SlotList& slots, const SlotVectors& vectors, bool rounded, std::byte* packed,
                  cudaStream_t stream) {
  move<false>(slots, vectors, rounded, packed, stream);
}

}  // namespace sheaf::cuda

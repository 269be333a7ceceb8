// Keys and values in e4m3: rounded when they are made, and expanded to fp16 for the layer that reads them.
#include "cuda/attention/attention.h"
#include "cuda/base/device_math.h"

namespace sheaf::cuda {
namespace {

constexpr int kBlocks = 528, kWarps = 8;

/// Where the key or value of a slot is in one head: `which` counts kv_heads of keys, then of values.
struct Place {
  int64_t index;  ///< of the scale
  int64_t value;  ///< of the first number
  __device__ Place(const HeadLayout& layout, int which, int32_t slot)
      : index(which * layout.slots + slot), value(index * layout.padded_dim) {}
};

/// A warp takes one of them at a time, four numbers a lane.
template <class Take>
__device__ void for_each_place(int64_t slots, const HeadLayout& layout, const Take& take) {
  const int64_t stride = int64_t{gridDim.x} * kWarps;
  for (int64_t i = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32; i < slots * 2 * layout.kv_heads;
       i += stride)
    take(static_cast<int>(i % (2 * layout.kv_heads)), i / (2 * layout.kv_heads));
}

__global__ void round_keys_kernel(const int32_t* slots, int32_t rows, HeadLayout layout, const f16* wide,
                                  NarrowKeys out) {
  const int lane = threadIdx.x % 32;
  for_each_place(rows, layout, [&](int which, int64_t row) {
    const Place at(layout, which, slots[row]);
    float v[8] = {}, most = 0;
    for (int part = 0; part < 2; ++part) {
      const int first = part * 128 + lane * 4;
      if (first >= layout.padded_dim) break;
      const auto* from = reinterpret_cast<const __half2*>(wide + at.value + first);
      for (int i = 0; i < 2; ++i) {
        const float2 pair = __half22float2(from[i]);
        v[part * 4 + 2 * i] = pair.x;
        v[part * 4 + 2 * i + 1] = pair.y;
        most = fmaxf(most, fmaxf(fabsf(pair.x), fabsf(pair.y)));
      }
    }
    for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    const Fp8Scale scale = Fp8Scale::fine(most);
    if (lane == 0) out.scales[at.index] = scale.scale;
    for (int part = 0; part < 2; ++part) {
      const int first = part * 128 + lane * 4;
      if (first >= layout.padded_dim) break;
      const float* four = v + part * 4;
      *reinterpret_cast<uint32_t*>(out.values + at.value + first) =
          pack_e4m3(four[0] * scale.inverse, four[1] * scale.inverse) |
          pack_e4m3(four[2] * scale.inverse, four[3] * scale.inverse) << 16;
    }
  });
}

__global__ void copy_narrow_kernel(const AttentionInputs* inputs, HeadLayout layout, NarrowKeys keys) {
  const AttentionInputs& in = *inputs;
  const int lane = threadIdx.x % 32;
  for_each_place(in.copy_count, layout, [&](int which, int64_t i) {
    const Place from(layout, which, in.copies[i].from), to(layout, which, in.copies[i].to);
    if (lane == 0) keys.scales[to.index] = keys.scales[from.index];
    for (int first = lane * 4; first < layout.padded_dim; first += 128)
      *reinterpret_cast<uint32_t*>(keys.values + to.value + first) =
          *reinterpret_cast<const uint32_t*>(keys.values + from.value + first);
  });
}

/// A thread takes sixteen numbers, so that neighbours write in a row.
__global__ void expand_keys_kernel(const AttentionInputs* inputs, HeadLayout layout, NarrowKeys keys,
                                   f16* wide) {
  const AttentionInputs& in = *inputs;
  const int chunks = layout.padded_dim / 16, heads = 2 * layout.kv_heads;
  const int64_t count = int64_t{in.seen_count} * heads * in.page_size * chunks;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int inside = static_cast<int>(i % (in.page_size * chunks));
    const int head = static_cast<int>(i / (in.page_size * chunks) % heads);
    const auto page = i / (int64_t{in.page_size} * chunks * heads);
    const Place at(layout, head, in.seen_pages[page] * in.page_size + inside / chunks);
    const float scale = keys.scales[at.index];
    const int64_t first = at.value + inside % chunks * 16;
    const uint4 from = *reinterpret_cast<const uint4*>(keys.values + first);
    const auto eight = [scale](uint32_t low, uint32_t high) {
      const auto two = [scale](uint32_t pair) {
        const float2 v = unpack_e4m3(pair & 0xffff);
        return pack_half(v.x * scale, v.y * scale);
      };
      return make_uint4(two(low), two(low >> 16), two(high), two(high >> 16));
    };
    auto* to = reinterpret_cast<uint4*>(wide + first);
    to[0] = eight(from.x, from.y);
    to[1] = eight(from.z, from.w);
  }
}

}  // namespace

void round_keys(const int32_t* slots, int32_t rows, const HeadLayout& layout, const f16* wide,
                const NarrowKeys& out, cudaStream_t stream) {
  round_keys_kernel<<<kBlocks, 32 * kWarps, 0, stream>>>(slots, rows, layout, wide, out);
}

void copy_keys(const AttentionInputs* on_device, const HeadLayout& layout, const NarrowKeys& keys,
               cudaStream_t stream) {
  copy_narrow_kernel<<<kBlocks, 32 * kWarps, 0, stream>>>(on_device, layout, keys);
}

void expand_keys(const AttentionInputs* on_device, const HeadLayout& layout, const NarrowKeys& keys,
                 f16* wide, cudaStream_t stream) {
  expand_keys_kernel<<<kBlocks, 32 * kWarps, 0, stream>>>(on_device, layout, keys, wide);
}

}  // namespace sheaf::cuda

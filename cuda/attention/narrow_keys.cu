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

/// Number `d` of the rotated bias of a head's key. `which` is of values where it is kv_heads and more.
struct TurnedBias {
  const float *bias = nullptr, *turn = nullptr;
  int head_dim, half;
  __device__ TurnedBias(const NarrowKeys& keys, const HeadLayout& layout, int which, int32_t slot)
      : head_dim(layout.head_dim), half(layout.rotary_dim / 2) {
    if (!keys.bias || which >= layout.kv_heads) return;
    bias = keys.bias + which * layout.head_dim;
    turn = keys.turns + int64_t{slot} * layout.rotary_dim;
  }
  __device__ float operator[](int d) const {
    if (!bias || d >= head_dim) return 0;
    if (d >= 2 * half) return bias[d];
    const int pair = d < half ? d : d - half;
    const float other = bias[d < half ? d + half : d - half], sine = turn[half + pair];
    return bias[d] * turn[pair] + (d < half ? -other : other) * sine;
  }
};

__global__ void place_turns_kernel(const float* rope, const int32_t* slots, int32_t rows, int32_t dim,
                                   float* turns) {
  for (int row = blockIdx.x; row < rows; row += gridDim.x)
    for (int i = threadIdx.x; i < dim; i += blockDim.x)
      turns[int64_t{slots[row]} * dim + i] = rope[int64_t{row} * dim + i];
}
__global__ void copy_turns_kernel(const AttentionInputs* inputs, int32_t dim, float* turns) {
  for (int copy = blockIdx.x; copy < inputs->copy_count; copy += gridDim.x)
    for (int i = threadIdx.x; i < dim; i += blockDim.x)
      turns[int64_t{inputs->copies[copy].to} * dim + i] = turns[int64_t{inputs->copies[copy].from} * dim + i];
}

__global__ void round_keys_kernel(const int32_t* slots, int32_t rows, HeadLayout layout, const f16* wide,
                                  NarrowKeys out) {
  const int lane = threadIdx.x % 32;
  for_each_place(rows, layout, [&](int which, int64_t row) {
    const Place at(layout, which, slots[row]);
    const TurnedBias bias(out, layout, which, slots[row]);
    float v[8] = {}, most = 0;
    for (int part = 0; part < 2; ++part) {
      const int first = part * 128 + lane * 4;
      if (first >= layout.padded_dim) break;
      const auto* from = reinterpret_cast<const __half2*>(wide + at.value + first);
      for (int i = 0; i < 2; ++i) {
        const float2 pair = __half22float2(from[i]);
        const float low = pair.x - bias[first + 2 * i], high = pair.y - bias[first + 2 * i + 1];
        v[part * 4 + 2 * i] = low;
        v[part * 4 + 2 * i + 1] = high;
        most = fmaxf(most, fmaxf(fabsf(low), fabsf(high)));
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
    const int32_t slot = in.seen_pages[page] * in.page_size + inside / chunks;
    const Place at(layout, head, slot);
    const TurnedBias bias(keys, layout, head, slot);
    const float scale = keys.scales[at.index];
    const int d = inside % chunks * 16;
    const int64_t first = at.value + d;
    const uint4 from = *reinterpret_cast<const uint4*>(keys.values + first);
    const auto eight = [&](uint32_t low, uint32_t high, int at_d) {
      const auto two = [&](uint32_t pair, int i) {
        const float2 v = unpack_e4m3(pair & 0xffff);
        return pack_half(v.x * scale + bias[at_d + i], v.y * scale + bias[at_d + i + 1]);
      };
      return make_uint4(two(low, 0), two(low >> 16, 2), two(high, 4), two(high >> 16, 6));
    };
    auto* to = reinterpret_cast<uint4*>(wide + first);
    to[0] = eight(from.x, from.y, d);
    to[1] = eight(from.z, from.w, d + 8);
  }
}

}  // namespace

void place_turns(const float* rope, const int32_t* slots, int32_t rows, const AttentionInputs* on_device,
                 const HeadLayout& layout, float* turns, cudaStream_t stream) {
  place_turns_kernel<<<kBlocks, 128, 0, stream>>>(rope, slots, rows, layout.rotary_dim, turns);
  copy_turns_kernel<<<kBlocks, 128, 0, stream>>>(on_device, layout.rotary_dim, turns);
}

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

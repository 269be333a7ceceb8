// Keys and values: copied; and in e4m3, rounded when they are made and expanded to fp16 for kernels that
// cannot read them.
#include "cuda/attention/attention.h"
#include "cuda/base/device_math.h"

namespace sheaf::cuda {
namespace {

constexpr int kBlocks = 528, kWarps = 8, kCopyBlocks = 264, kCopyWarps = 16;

/// Of the first number of a slot's key, and of its value in fp16.
__device__ int64_t place_of(const HeadLayout& layout, int head, int32_t slot) {
  return (head * layout.slots + slot) * layout.padded_dim;
}
/// Of number `d` of a slot's value in e4m3.
__device__ int64_t value_place(const HeadLayout& layout, int head, int32_t slot, int d) {
  return place_of(layout, head, slot - slot % kNarrowPage) + d * kNarrowPage + narrow_place(slot);
}

/// Warps take what there is of `count` things in every key/value head.
template <class Take>
__device__ void for_each(int64_t count, const HeadLayout& layout, const Take& take) {
  const int64_t stride = int64_t{gridDim.x} * kWarps;
  for (int64_t i = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32; i < count * layout.kv_heads; i += stride)
    take(static_cast<int>(i % layout.kv_heads), i / layout.kv_heads);
}

__device__ uint32_t round4(float a, float b, float c, float d, float by) {
  return pack_e4m3(a * by, b * by) | pack_e4m3(c * by, d * by) << 16;
}
__device__ float4 four_of(const f16* from) {
  const uint2 both = *reinterpret_cast<const uint2*>(from);
  const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&both.x));
  const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&both.y));
  return make_float4(low.x, low.y, high.x, high.y);
}

/// Number `d` of the rotated bias of a head's key.
struct TurnedBias {
  const float *bias = nullptr, *turn = nullptr;
  int head_dim, half;
  __device__ TurnedBias(const NarrowKeys& keys, const HeadLayout& layout, int head, int32_t slot)
      : head_dim(layout.head_dim), half(layout.rotary_dim / 2) {
    if (!keys.bias) return;
    bias = keys.bias + head * layout.head_dim;
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

/// A warp takes a key and its value of one head after the other. `inputs` [1].
__global__ void copy_keys_kernel(const AttentionInputs* inputs, HeadLayout layout, f16* keys, f16* values) {
  const AttentionInputs& in = *inputs;
  const int chunks = layout.padded_dim / 8;  // of 16 bytes
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = blockIdx.x * kCopyWarps + warp; i < in.copy_count * layout.kv_heads;
       i += gridDim.x * kCopyWarps) {
    const SlotCopy copy = in.copies[i / layout.kv_heads];
    const int64_t head = int64_t{i % layout.kv_heads} * layout.slots;
    for (int chunk = lane; chunk < 2 * chunks; chunk += 32) {
      auto* tensor = reinterpret_cast<uint4*>(chunk < chunks ? keys : values);
      const int at = chunk % chunks;
      tensor[(head + copy.to) * chunks + at] = tensor[(head + copy.from) * chunks + at];
    }
  }
}

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

/// A lane takes four numbers of a key at a time.
__global__ void round_keys_kernel(const int32_t* slots, int32_t rows, HeadLayout layout, const f16* wide,
                                  NarrowKeys out) {
  const int lane = threadIdx.x % 32;
  for_each(rows, layout, [&](int head, int64_t row) {
    const int64_t at = place_of(layout, head, slots[row]);
    const TurnedBias bias(out, layout, head, slots[row]);
    const float by = 1 / out.scales[layout.heads + head];
    for (int d = lane * 4; d < layout.padded_dim; d += 128) {
      const float4 v = four_of(wide + at + d);
      *reinterpret_cast<uint32_t*>(out.keys + at + d) =
          round4(v.x - bias[d], v.y - bias[d + 1], v.z - bias[d + 2], v.w - bias[d + 3], by);
    }
  });
}

/// A warp takes the rows of a page that follow each other, so that whole pages are written at once.
__global__ void round_values_kernel(const int32_t* slots, int32_t rows, HeadLayout layout, const f16* wide,
                                    NarrowKeys out) {
  const int lane = threadIdx.x % 32;
  for_each(rows, layout, [&](int head, int64_t row) {
    const int32_t first = slots[row];
    if (first % kNarrowPage != 0 && row > 0 && slots[row - 1] == first - 1) return;  // not the first of them
    int count = 1;
    while (row + count < rows && (first + count) % kNarrowPage != 0 && slots[row + count] == first + count)
      ++count;
    const float by = 1 / out.scales[layout.heads + layout.kv_heads + head];
    const f16* from = wide + place_of(layout, head, first);
    for (int d = lane * 4; d < layout.padded_dim; d += 128) {
      if (count == kNarrowPage) {
        uint32_t keys[kNarrowPage];  // four numbers of each
#pragma unroll
        for (int place = 0; place < kNarrowPage; ++place) {
          const float4 v = four_of(from + int64_t{narrow_key(place)} * layout.padded_dim + d);
          keys[place] = round4(v.x, v.y, v.z, v.w, by);
        }
        auto* to = reinterpret_cast<uint4*>(out.values + value_place(layout, head, first, d));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          uint32_t word[4];
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const uint32_t pick = static_cast<uint32_t>(i | (i + 4) << 4);
            const uint32_t low = __byte_perm(keys[4 * j], keys[4 * j + 1], pick);
            const uint32_t high = __byte_perm(keys[4 * j + 2], keys[4 * j + 3], pick);
            word[j] = __byte_perm(low, high, 0x5410);
          }
          to[i] = make_uint4(word[0], word[1], word[2], word[3]);
        }
      } else {
        for (int key = 0; key < count; ++key) {
          const float4 v = four_of(from + int64_t{key} * layout.padded_dim + d);
          const uint32_t rounded = round4(v.x, v.y, v.z, v.w, by);
          for (int i = 0; i < 4; ++i)
            out.values[value_place(layout, head, first + key, d + i)].__x =
                static_cast<uint8_t>(rounded >> 8 * i);
        }
      }
    }
  });
}

/// A thread takes eight numbers. `scales` [heads].
__global__ void round_queries_kernel(const f16* q, int64_t count, int dim, int heads, const float* scales,
                                     e4m3* out) {
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 8; i < count;
       i += int64_t{gridDim.x} * blockDim.x * 8) {
    const float by = 1 / scales[i / dim % heads];
    const float4 low = four_of(q + i), high = four_of(q + i + 4);
    *reinterpret_cast<uint2*>(out + i) =
        make_uint2(round4(low.x, low.y, low.z, low.w, by), round4(high.x, high.y, high.z, high.w, by));
  }
}

__global__ void copy_narrow_kernel(const AttentionInputs* inputs, HeadLayout layout, NarrowKeys keys) {
  const AttentionInputs& in = *inputs;
  for_each(in.copy_count, layout, [&](int head, int64_t i) {
    const auto [from, to] = in.copies[i];
    for (int d = static_cast<int>(threadIdx.x) % 32; d < layout.padded_dim; d += 32) {
      keys.keys[place_of(layout, head, to) + d] = keys.keys[place_of(layout, head, from) + d];
      keys.values[value_place(layout, head, to, d)] = keys.values[value_place(layout, head, from, d)];
    }
  });
}

/// A thread takes sixteen numbers of a key, so that neighbours write in a row.
__global__ void expand_keys_kernel(const AttentionInputs* inputs, HeadLayout layout, NarrowKeys keys,
                                   f16* wide) {
  const AttentionInputs& in = *inputs;
  const int chunks = layout.padded_dim / 16, heads = layout.kv_heads;
  const int64_t count = int64_t{in.seen_count} * heads * in.page_size * chunks;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int inside = static_cast<int>(i % (in.page_size * chunks));
    const int head = static_cast<int>(i / (in.page_size * chunks) % heads);
    const auto page = i / (int64_t{in.page_size} * chunks * heads);
    const int32_t slot = in.seen_pages[page] * in.page_size + inside / chunks;
    const TurnedBias bias(keys, layout, head, slot);
    const float scale = keys.scales[layout.heads + head];
    const int d = inside % chunks * 16;
    const int64_t first = place_of(layout, head, slot) + d;
    const uint4 from = *reinterpret_cast<const uint4*>(keys.keys + first);
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

/// A warp takes a page, a lane four numbers of all its keys.
__global__ void expand_values_kernel(const AttentionInputs* inputs, HeadLayout layout, NarrowKeys keys,
                                     f16* wide) {
  const AttentionInputs& in = *inputs;
  const int pages = max(1, in.page_size / kNarrowPage);  // of ours in one of the step's
  for_each(int64_t{in.seen_count} * pages, layout, [&](int head, int64_t i) {
    const int32_t first = in.seen_pages[i / pages] * in.page_size / kNarrowPage * kNarrowPage +
                          static_cast<int>(i % pages) * kNarrowPage;
    const float scale = keys.scales[layout.heads + layout.kv_heads + head];
    for (int d = static_cast<int>(threadIdx.x) % 32 * 4; d < layout.padded_dim; d += 128) {
      uint4 four[4];  // all keys of a number each
      const auto* from = reinterpret_cast<const uint4*>(keys.values + value_place(layout, head, first, d));
#pragma unroll
      for (int j = 0; j < 4; ++j) four[j] = from[j];
#pragma unroll
      for (int place = 0; place < kNarrowPage; ++place) {
        const auto byte = [&](const uint4& of) {
          const uint32_t word = place < 4 ? of.x : place < 8 ? of.y : place < 12 ? of.z : of.w;
          return word >> place % 4 * 8 & 0xff;
        };
        const float2 low = unpack_e4m3(byte(four[0]) | byte(four[1]) << 8),
                     high = unpack_e4m3(byte(four[2]) | byte(four[3]) << 8);
        f16* to = wide + place_of(layout, head, first + narrow_key(place)) + d;
        *reinterpret_cast<uint2*>(to) =
            make_uint2(pack_half(low.x * scale, low.y * scale), pack_half(high.x * scale, high.y * scale));
      }
    }
  });
}

}  // namespace

void copy_keys(const AttentionInputs* on_device, const HeadLayout& layout, f16* keys, f16* values,
               cudaStream_t stream) {
  copy_keys_kernel<<<kCopyBlocks, 32 * kCopyWarps, 0, stream>>>(on_device, layout, keys, values);
}

void place_turns(const float* rope, const int32_t* slots, int32_t rows, const AttentionInputs* on_device,
                 const HeadLayout& layout, float* turns, cudaStream_t stream) {
  place_turns_kernel<<<kBlocks, 128, 0, stream>>>(rope, slots, rows, layout.rotary_dim, turns);
  copy_turns_kernel<<<kBlocks, 128, 0, stream>>>(on_device, layout.rotary_dim, turns);
}

void round_keys(const int32_t* slots, int32_t rows, const HeadLayout& layout, const f16* wide,
                const NarrowKeys& out, cudaStream_t stream) {
  const f16* values = wide + layout.kv_heads * layout.slots * layout.padded_dim;
  round_keys_kernel<<<kBlocks, 32 * kWarps, 0, stream>>>(slots, rows, layout, wide, out);
  round_values_kernel<<<kBlocks, 32 * kWarps, 0, stream>>>(slots, rows, layout, values, out);
}

void round_queries(const f16* q, int32_t rows, const HeadLayout& layout, const float* scales, e4m3* out,
                   cudaStream_t stream) {
  const int64_t count = int64_t{rows} * layout.heads * layout.padded_dim;
  round_queries_kernel<<<kBlocks, 32 * kWarps, 0, stream>>>(q, count, layout.padded_dim, layout.heads, scales,
                                                            out);
}

void copy_keys(const AttentionInputs* on_device, const HeadLayout& layout, const NarrowKeys& keys,
               cudaStream_t stream) {
  copy_narrow_kernel<<<kBlocks, 32 * kWarps, 0, stream>>>(on_device, layout, keys);
}

void expand_keys(const AttentionInputs* on_device, const HeadLayout& layout, const NarrowKeys& keys,
                 f16* wide, cudaStream_t stream) {
  f16* values = wide + layout.kv_heads * layout.slots * layout.padded_dim;
  expand_keys_kernel<<<kBlocks, 32 * kWarps, 0, stream>>>(on_device, layout, keys, wide);
  expand_values_kernel<<<kBlocks, 32 * kWarps, 0, stream>>>(on_device, layout, keys, values);
}

}  // namespace sheaf::cuda

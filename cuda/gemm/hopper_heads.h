#pragma once
// What becomes of a tile's heads: bias, norm and rotation, and their places.
#include "cuda/gemm/hopper_tile.h"

namespace sheaf::cuda {
namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/// How a thread's part of a row is rotated.
template <int D>
struct Turn {
  static constexpr int kChunks = D / 8, kHalf = kChunks / 2;  // of 8 values each
  float2 cosine[kHalf], sine[kHalf];

  __device__ void load(const HeadTargets& to, int row, int lane, int m) {
    const float* angles = to.rope + static_cast<int64_t>(row < m ? row : 0) * D + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < kHalf; ++j) {
      cosine[j] = *reinterpret_cast<const float2*>(angles + j * 8);
      sine[j] = *reinterpret_cast<const float2*>(angles + D / 2 + j * 8);
    }
  }
};

/// What a head of a tile is: 0 query, 1 key, 2 value, 3 nothing.
__device__ inline int kind_of(int head, const HeadLayout& layout) {
  if (head < layout.heads) return 0;
  if (head < layout.heads + layout.kv_heads) return 1;
  return head < layout.heads + 2 * layout.kv_heads ? 2 : 3;
}

/// Bias, norm and rotation of one of a thread's two rows of a tile's heads. `norms` are the weights of
/// queries and keys.
template <int D>
__device__ void turn_row(const HeadTargets& to, const float (&norms)[2][128], float (&sum)[kCols / 2],
                         const Turn<D>& turn, int first_head, int i, int lane) {
  constexpr int kChunks = Turn<D>::kChunks, kHalf = Turn<D>::kHalf;
  const HeadLayout& layout = to.layout;
  const int column = lane % 4 * 2;
#pragma unroll
  for (int h = 0; h < kCols / D; ++h) {
    const int head = first_head + h, kind = kind_of(head, layout);
    if (kind == 3) continue;
    auto value = [&](int j, int e) -> float& { return sum[(h * kChunks + j) * 4 + 2 * i + e]; };
    if (to.bias) {
#pragma unroll
      for (int j = 0; j < kChunks; ++j) {
        const float2 b = *reinterpret_cast<const float2*>(to.bias + head * D + j * 8 + column);
        value(j, 0) += b.x;
        value(j, 1) += b.y;
      }
    }
    if (kind == 2) continue;
    // The queries' scale goes with the norm's, or with the values.
    const float query_scale = kind == 0 ? layout.query_scale : 1.0f;
    if (layout.norm != 0) {
      float square = 0;
#pragma unroll
      for (int j = 0; j < kChunks; ++j) square += value(j, 0) * value(j, 0) + value(j, 1) * value(j, 1);
      square += __shfl_xor_sync(0xffffffffu, square, 1);
      square += __shfl_xor_sync(0xffffffffu, square, 2);
      const float scale = norm_scale(square / D, layout.eps) * query_scale;
      const float* weight = norms[kind] + column;
#pragma unroll
      for (int j = 0; j < kChunks; ++j) {
        const float2 w = *reinterpret_cast<const float2*>(weight + j * 8);
        value(j, 0) *= scale * w.x;
        value(j, 1) *= scale * w.y;
      }
    } else if (kind == 0) {
#pragma unroll
      for (int j = 0; j < kChunks; ++j) {
        value(j, 0) *= query_scale;
        value(j, 1) *= query_scale;
      }
    }
#pragma unroll
    for (int j = 0; j < kHalf; ++j) {
      const float2 a = make_float2(value(j, 0), value(j, 1)),
                   b = make_float2(value(j + kHalf, 0), value(j + kHalf, 1));
      const float2 cosine = turn.cosine[j], sine = turn.sine[j];
      value(j, 0) = a.x * cosine.x - b.x * sine.x;
      value(j, 1) = a.y * cosine.y - b.y * sine.y;
      value(j + kHalf, 0) = b.x * cosine.x + a.x * sine.x;
      value(j + kHalf, 1) = b.y * cosine.y + a.y * sine.y;
    }
  }
}

/// Takes a warp's 16 rows of a tile's heads to their places, by way of shared memory so that whole rows
/// leave. Lane l knows the slot of row l % 16. `buffer` is the warp's own.
template <int D>
__device__ void send_heads(const HeadTargets& to, const float (&sum)[kCols / 2], uint8_t (*buffer)[kHeadLine],
                           int first_head, int first_row, int32_t slot, int lane, int m) {
  __syncwarp();
#pragma unroll
  for (int j = 0; j < kCols / 8; j += 2) {
    uint32_t r[4];
#pragma unroll
    for (int h = 0; h < 4; ++h) {
      const int g = (j + h / 2) * 4 + h % 2 * 2;
      r[h] = pack_half(sum[g], sum[g + 1]);
    }
    store4(&buffer[lane % 16][(j + lane / 16) * 16], r[0], r[1], r[2], r[3]);
  }
  __syncwarp();
  // Each lane has the same 8 columns of all rows.
  const HeadLayout& layout = to.layout;
  const int head = first_head + lane * 8 / D, kind = kind_of(head, layout);
  const int own = (head - layout.heads) % layout.kv_heads;
  f16* out = (kind == 0   ? to.q + head * D
              : kind == 1 ? to.keys + own * layout.slots * D
                          : to.values + own * layout.slots * D) +
             lane * 8 % D;
  const int64_t stride = kind == 0 ? layout.heads * D : D;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int32_t its_slot = __shfl_sync(0xffffffffu, slot, i);
    if (first_row + i < m && kind != 3)
      *reinterpret_cast<uint4*>(out + (kind == 0 ? first_row + i : its_slot) * stride) =
          *reinterpret_cast<const uint4*>(&buffer[i][lane * 16]);
  }
}

/// The same in e4m3: queries and keys leave in whole rows, values a key to each lane, as their pages have
/// them.
template <int D>
__device__ void send_narrow_heads(const HeadTargets& to, const float (&sum)[kCols / 2],
                                  uint8_t (*buffer)[kHeadLine], int first_head, int first_row, int32_t slot,
                                  int lane, int m) {
  constexpr int kPiece = 16;  // columns: two chunks of 8, their pairs taking turns
  const HeadLayout& layout = to.layout;
  const int all_heads = layout.heads + 2 * layout.kv_heads;
  float by[kCols / D];
#pragma unroll
  for (int h = 0; h < kCols / D; ++h) by[h] = 1 / to.narrow.scales[min(first_head + h, all_heads - 1)];
  __syncwarp();
#pragma unroll
  for (int piece = 0; piece < kCols / kPiece; piece += 2) {
    uint32_t r[4];
#pragma unroll
    for (int h = 0; h < 4; ++h) {
      const int g = (piece + h / 2) * 8 + h % 2 * 2;
      const float scale = by[(piece + h / 2) * kPiece / D];
      r[h] = pack_e4m3(sum[g] * scale, sum[g + 1] * scale) | pack_e4m3(sum[g + 4] * scale, sum[g + 5] * scale)
                                                                 << 16;
    }
    store4(&buffer[lane % 16][(piece + lane / 16) * kPiece], r[0], r[1], r[2], r[3]);
  }
  __syncwarp();
  {
    // Each lane has the same piece of every other row.
    const int head = first_head + lane % 16 * kPiece / D, kind = kind_of(head, layout);
    e4m3* out = (kind == 0 ? to.q8 + head * D : to.narrow.keys + (head - layout.heads) * layout.slots * D) +
                lane % 16 * kPiece % D;
    const int64_t stride = kind == 0 ? layout.heads * D : D;
#pragma unroll
    for (int i = 0; i < 16; i += 2) {
      const int row = i + lane / 16;
      const int32_t its_slot = __shfl_sync(0xffffffffu, slot, row);
      if (first_row + row >= m || kind > 1) continue;
      const uint4 p = *reinterpret_cast<const uint4*>(&buffer[row][lane % 16 * kPiece]);
      *reinterpret_cast<uint4*>(out + (kind == 0 ? first_row + row : its_slot) * stride) =
          make_uint4(__byte_perm(p.x, p.y, 0x5410), __byte_perm(p.z, p.w, 0x5410),
                     __byte_perm(p.x, p.y, 0x7632), __byte_perm(p.z, p.w, 0x7632));
    }
  }
#pragma unroll
  for (int h = 0; h < kCols / D; ++h) {
    if (kind_of(first_head + h, layout) != 2 || first_row + lane % 16 >= m) continue;
    const int own = first_head + h - layout.heads - layout.kv_heads;
    e4m3* out = to.narrow.values + (own * layout.slots + slot - slot % kNarrowPage) * D + narrow_place(slot);
#pragma unroll 4
    for (int word = lane / 16; word < D / 4; word += 2) {
      const uint32_t four = *reinterpret_cast<const uint32_t*>(&buffer[lane % 16][h * D + word * 4]);
      e4m3* at = out + (word / 4 * kPiece + word % 4 * 2) * kNarrowPage;
      at[0].__x = static_cast<uint8_t>(four);
      at[kNarrowPage].__x = static_cast<uint8_t>(four >> 8);
      at[8 * kNarrowPage].__x = static_cast<uint8_t>(four >> 16);
      at[9 * kNarrowPage].__x = static_cast<uint8_t>(four >> 24);
    }
  }
}
#endif

}  // namespace
}  // namespace sheaf::cuda

#pragma once
// A tile of a matrix product on Hopper: its size, its shared memory, and what a block knows of its work.
#include <type_traits>

#include "cuda/base/hopper.h"
#include "cuda/gemm/gemm.h"
#include "cuda/ops/gates.h"

namespace sheaf::cuda {
namespace {

constexpr int kRows = 128, kCols = 256;    // of a tile
constexpr int kLine = 128;                 // bytes of a stage's rows
constexpr int kHeadLine = kCols * 2 + 16;  // bytes of a row of heads; 16 more spread rows over the banks
template <class Element>
constexpr int kDepth = kLine / static_cast<int>(sizeof(Element));  // summed columns of a stage
template <class Element>
constexpr bool kScaled = std::is_same_v<Element, e4m3>;
static_assert(kCols / 2 == kFp8Block, "gated values of a tile share a scale");

template <class Element, Epilogue epilogue>
struct Shared {
  /// Columns of a tile that leave, and as what.
  static constexpr int kOut = is_gated(epilogue) ? kCols / 2 : kCols;
  using Out = std::conditional_t<epilogue == Epilogue::add, float,
                                 std::conditional_t<is_gated(epilogue), Element, bf16>>;
  /// Blocks of 64 rows and one line that a warpgroup has in shared memory on their way out.
  static constexpr int kOutBlocks = epilogue == Epilogue::add                           ? 2
                                    : epilogue == Epilogue::store || is_gated(epilogue) ? kOut / kDepth<Out>
                                                                                        : 0;
  static constexpr bool kHeads = epilogue == Epilogue::heads;
  static constexpr int kStages = epilogue == Epilogue::store || kHeads ? 3 : 4;
  alignas(1024) uint8_t in[kStages][kRows][kLine];
  alignas(1024) uint8_t weight[kStages][kCols][kLine];
  alignas(
      1024) uint8_t out[2][kOutBlocks > 0 ? kOutBlocks : 1][kOutBlocks > 0 ? 64 : 1][kLine];  // by warpgroup
  alignas(16) uint8_t heads[kHeads ? 8 : 1][kHeads ? 16 : 1][kHeads ? kHeadLine : 16];  // by warp, likewise
  float norms[2][kHeads ? 128 : 1];  // weights of the queries' and the keys' norm
  alignas(16) float weight_scales[kScaled<Element> ? kCols : 4];  // of the tile that ends next
  uint64_t full[kStages], empty[kStages], scales_read;
};

/// What e4m3 values are multiplied by.
struct Scales {
  const float* in;      ///< [m]
  const float* weight;  ///< [n]
  float* out;           ///< [m, tiles across] where the epilogue is gated
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr int kTogether = 8;  // cluster rows whose tiles are computed side by side

/// Tiles in an order that keeps those computed side by side close to a square.
struct TileOrder {
  int clusters_down, tiles_across;
  __device__ int count() const { return clusters_down * tiles_across; }
  __device__ int2 at(int index) const {
    const int group = index / (kTogether * tiles_across);
    const int first = group * kTogether;
    const int height = min(kTogether, clusters_down - first);
    const int inside = index - first * tiles_across;
    return make_int2(first + inside % height, inside / height);
  }
};

/// What a block has to do.
struct BlockWork {
  float* out;  ///< [m, n], where the epilogue is add or store_floats
  int m, n;
  int stages;  ///< of kDepth summed columns each
  Scales scales;
  TileOrder order;
  uint32_t rank;  ///< of the block in its cluster
};

// What becomes of a tile's sums where they are not heads: scaled, gated, rounded, stored or added.

/// activation(gate) × up of four of one row, in the gates' place. (Of two rows, one would round as the other
/// does.) One division for all four: the unit for quotients and exponentials is what this waits for. Below
/// -20 the sigmoid stays what it is there, 2e-9.
template <Activation activation>
__device__ void gate4(float& a, float& b, float& c, float& d, float up_a, float up_b, float up_c,
                      float up_d) {
  bound<activation>(a, up_a);
  bound<activation>(b, up_b);
  bound<activation>(c, up_c);
  bound<activation>(d, up_d);
  const auto below = [](float gate) {
    return 1.0f + fast_exp2(fminf(sigmoid_input<activation>(gate) * -1.4426950f, 28.8539f));
  };
  const float p = below(a), q = below(b), r = below(c), s = below(d);
  const float pq = p * q, rs = r * s, all = __fdividef(1.0f, pq * rs);
  const float by_pq = all * rs, by_rs = all * pq;
  a *= up_a * (by_pq * q);
  b *= up_b * (by_pq * p);
  c *= up_c * (by_rs * s);
  d *= up_d * (by_rs * r);
}

/// Writes a warpgroup's 64 × 256 sums.
__device__ inline void write_floats(const BlockWork& work, const float (&sum)[kCols / 2], int first_row,
                                    int first_col, int warp, int lane) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = first_row + warp * 16 + lane / 4 + 8 * i;
    if (row >= work.m) continue;
    float* to = work.out + static_cast<int64_t>(row) * work.n + first_col + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < kCols / 8; ++j) {
      if (first_col + j * 8 >= work.n) break;
      *reinterpret_cast<float2*>(to + j * 8) = make_float2(sum[j * 4 + 2 * i], sum[j * 4 + 2 * i + 1]);
    }
  }
}

/// Has the copy engine add a warpgroup's sums to what is there, 32 columns at a time, while the next tile is
/// computed. Each warp sends its own 16 rows.
template <class Memory>
__device__ void add_sums(Memory& memory, const CUtensorMap* out_map, const float (&sum)[kCols / 2],
                         const BlockWork& work, int first_row, int first_col, int group, int warp, int lane) {
  constexpr int kChunk = kDepth<float>;
#pragma unroll
  for (int chunk = 0; chunk < kCols / kChunk; ++chunk) {
    if (first_col + chunk * kChunk >= work.n) break;
    uint8_t(*to)[kLine] = &memory.out[group][chunk % 2][warp * 16];
    if (lane == 0) stores_wait_read<1>();
    __syncwarp();
#pragma unroll
    for (int j = 0; j < kChunk / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = lane / 4 + 8 * i, piece = j * 2 + lane % 4 / 2;
        const int from = (chunk * (kChunk / 8) + j) * 4 + 2 * i;
        *reinterpret_cast<float2*>(&to[row][(piece ^ (row % 8)) * 16 + lane % 2 * 8]) =
            make_float2(sum[from], sum[from + 1]);
      }
    }
    fence_shared_writes();
    __syncwarp();
    if (lane == 0) {
      add_box(out_map, to, first_col + chunk * kChunk, first_row + warp * 16);
      stores_commit();
    }
  }
}

/// activation(gate) × up of a thread's two rows in place of the gates, divided by the scale of their block.
/// `row` is the first one.
template <Activation activation>
__device__ void gate_and_scale(float (&sum)[kCols / 2], const BlockWork& work, int row, int block, int lane) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float most = 0;
#pragma unroll
    for (int g = 2 * i; g < kCols / 2; g += 16) {
      gate4<activation>(sum[g], sum[g + 1], sum[g + 8], sum[g + 9], sum[g + 4], sum[g + 5], sum[g + 12],
                        sum[g + 13]);
#pragma unroll
      for (const int at : {g, g + 1, g + 8, g + 9}) most = fmaxf(most, fabsf(sum[at]));
    }
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
    const Fp8Scale scale = Fp8Scale::coarse(most);
    if (lane % 4 == 0 && row + 8 * i < work.m)
      work.scales.out[static_cast<int64_t>(row + 8 * i) * work.order.tiles_across + block] = scale.scale;
#pragma unroll
    for (int g = 2 * i; g < kCols / 2; g += 8) {
      sum[g] *= scale.inverse;
      sum[g + 1] *= scale.inverse;
    }
  }
}

/// Rounds a warpgroup's sums (gated: of gate and up together) and has the copy engine take them out of
/// shared memory, while the next tile is computed.
template <class Memory, Epilogue epilogue>
__device__ void store_sums(Memory& memory, const CUtensorMap* out_map, float (&sum)[kCols / 2],
                           const BlockWork& work, int first_row, int tile_across, int group, int warp,
                           int lane) {
  constexpr int kOut = Memory::kOut, kBlock = kDepth<typename Memory::Out>;
  constexpr int kChunk = 16 / sizeof(typename Memory::Out);  // values that stay together
  const bool first = threadIdx.x % 128 == 0;
  if constexpr (kScaled<typename Memory::Out>)
    gate_and_scale<activation_of(epilogue)>(sum, work, first_row + warp * 16 + lane / 4, tile_across, lane);
  if (first) stores_wait_read();
  named_sync(1 + group, 128);
#pragma unroll
  for (int j = 0; j < kOut / kChunk; j += 2) {
    uint32_t r[4];
    if constexpr (kScaled<typename Memory::Out>) {
#pragma unroll
      for (int h = 0; h < 4; ++h) {
        const int g = (j + h / 2) * 16 + h % 2 * 2;  // two chunks of gates, each with its ups after it
        r[h] = pack_e4m3(sum[g], sum[g + 1]) | pack_e4m3(sum[g + 8], sum[g + 9]) << 16;
      }
    } else if constexpr (is_gated(epilogue)) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int g = j * 8 + 2 * i;  // gates, four further the ups, eight further the next chunk's
        gate4<activation_of(epilogue)>(sum[g], sum[g + 1], sum[g + 8], sum[g + 9], sum[g + 4], sum[g + 5],
                                       sum[g + 12], sum[g + 13]);
        r[i] = pack(sum[g], sum[g + 1]);
        r[i + 2] = pack(sum[g + 8], sum[g + 9]);
      }
    } else {
#pragma unroll
      for (int h = 0; h < 4; ++h) {
        const int g = (j + h / 2) * 4 + h % 2 * 2;
        r[h] = pack(sum[g], sum[g + 1]);
      }
    }
    const int row = warp * 16 + lane % 16, chunk = j % 8 + lane / 16;
    store4(&memory.out[group][j / 8][row][(chunk ^ (row % 8)) * 16], r[0], r[1], r[2], r[3]);
  }
  fence_shared_writes();
  named_sync(1 + group, 128);
  if (first) {
#pragma unroll
    for (int block = 0; block < Memory::kOutBlocks; ++block)
      store_box(out_map, &memory.out[group][block][0][0], tile_across * kOut + block * kBlock, first_row);
    stores_commit();
  }
}

/// Times the scales of a thread's two rows and of the weight's columns.
__device__ inline void scale_sums(float (&sum)[kCols / 2], float2 by_row, const float* by_col, int lane) {
  const float rows[2] = {by_row.x, by_row.y};
#pragma unroll
  for (int j = 0; j < kCols / 8; ++j) {
    const float2 cols = *reinterpret_cast<const float2*>(by_col + j * 8 + lane % 4 * 2);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sum[j * 4 + 2 * i] *= rows[i] * cols.x;
      sum[j * 4 + 2 * i + 1] *= rows[i] * cols.y;
    }
  }
}
#endif

}  // namespace
}  // namespace sheaf::cuda

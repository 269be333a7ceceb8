// Matrix products with what follows them, on Hopper. Two blocks of a cluster take two tiles of 128 rows and
// the same 256 columns: each brings half of the weight's tile for both. In a block one thread keeps the ring
// of stages full; two warpgroups compute 64 × 256 each. Blocks stay and take tile after tile, so the next
// tile's stages are filled while this one's results leave.
//
// Bytes: a stage of 64 summed columns is 16 kB of input and 16 kB of weight a block for 4.2 MFLOP, so 5.5
// TB/s from L2 at 700 TFLOP/s. In e4m3 it is 128 columns for twice the FLOP, at twice the speed.
//
// Sums of e4m3 products stay in the matrix unit, which keeps about 14 bits of them: what that costs is small
// beside the rounding of the values (docs/performance.md).
#pragma once
#include <stdexcept>
#include <type_traits>

#include "cuda/base/hopper.h"
#include "cuda/base/tensor_map.h"
#include "cuda/gemm/gemm.h"

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
  static constexpr int kOut = epilogue == Epilogue::swiglu ? kCols / 2 : kCols;
  using Out = std::conditional_t<epilogue == Epilogue::add, float,
                                 std::conditional_t<epilogue == Epilogue::swiglu, Element, bf16>>;
  /// Blocks of 64 rows and one line that a warpgroup has in shared memory on their way out.
  static constexpr int kOutBlocks = epilogue == Epilogue::add ? 2
                                    : epilogue == Epilogue::store || epilogue == Epilogue::swiglu
                                        ? kOut / kDepth<Out>
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
  float* out;           ///< [m, tiles across] where the epilogue is swiglu
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

/// silu(gate) × up of four of one row, in the gates' place. (Of two rows, one would round as the other does.)
/// One division for all four: the unit for quotients and exponentials is what this waits for. Below -20 the
/// sigmoid stays what it is there, 2e-9.
__device__ void gate4(float& a, float& b, float& c, float& d, float up_a, float up_b, float up_c,
                      float up_d) {
  const auto below = [](float gate) { return 1.0f + fast_exp2(fminf(gate * -1.4426950f, 28.8539f)); };
  const float p = below(a), q = below(b), r = below(c), s = below(d);
  const float pq = p * q, rs = r * s, all = __fdividef(1.0f, pq * rs);
  const float by_pq = all * rs, by_rs = all * pq;
  a *= up_a * (by_pq * q);
  b *= up_b * (by_pq * p);
  c *= up_c * (by_rs * s);
  d *= up_d * (by_rs * r);
}
/// Four 8 × 8 matrices; each lane gives the address of one row.
__device__ void store4(void* to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(to)),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

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
      const float scale = rsqrtf(square / D + layout.eps) * query_scale;
      const float* weight = norms[kind] + column;
#pragma unroll
      for (int j = 0; j < kChunks; ++j) {
        const float2 w = shared_pair(weight + j * 8);
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

/// What a block has to do.
struct BlockWork {
  float* out;  ///< [m, n], where the epilogue is add or store_floats
  int m, n;
  int stages;  ///< of kDepth summed columns each
  Scales scales;
  TileOrder order;
  uint32_t rank;  ///< of the block in its cluster
};

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
        put_shared_pair(&to[row][(piece ^ (row % 8)) * 16 + lane % 2 * 8], sum[from], sum[from + 1]);
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

/// silu(gate) × up of a thread's two rows in place of the gates, divided by the scale of their block. `row`
/// is the first one.
__device__ inline void gate_and_scale(float (&sum)[kCols / 2], const BlockWork& work, int row, int block,
                                      int lane) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float most = 0;
#pragma unroll
    for (int g = 2 * i; g < kCols / 2; g += 16) {
      gate4(sum[g], sum[g + 1], sum[g + 8], sum[g + 9], sum[g + 4], sum[g + 5], sum[g + 12], sum[g + 13]);
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

/// Rounds a warpgroup's sums (swiglu: of gate and up together) and has the copy engine take them out of
/// shared memory, while the next tile is computed.
template <class Memory, Epilogue epilogue>
__device__ void store_sums(Memory& memory, const CUtensorMap* out_map, float (&sum)[kCols / 2],
                           const BlockWork& work, int first_row, int tile_across, int group, int warp,
                           int lane) {
  constexpr int kOut = Memory::kOut, kBlock = kDepth<typename Memory::Out>;
  constexpr int kChunk = 16 / sizeof(typename Memory::Out);  // values that stay together
  const bool first = threadIdx.x % 128 == 0;
  if constexpr (kScaled<typename Memory::Out>)
    gate_and_scale(sum, work, first_row + warp * 16 + lane / 4, tile_across, lane);
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
    } else if constexpr (epilogue == Epilogue::swiglu) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int g = j * 8 + 2 * i;  // gates, four further the ups, eight further the next chunk's
        gate4(sum[g], sum[g + 1], sum[g + 8], sum[g + 9], sum[g + 4], sum[g + 5], sum[g + 12], sum[g + 13]);
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
    const float2 cols = shared_pair(by_col + j * 8 + lane % 4 * 2);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sum[j * 4 + 2 * i] *= rows[i] * cols.x;
      sum[j * 4 + 2 * i + 1] *= rows[i] * cols.y;
    }
  }
}

template <class Element>
__device__ void multiply_line(float (&sum)[kCols / 2], uint64_t a, uint64_t b, bool add) {
#pragma unroll
  for (int step = 0; step < kLine / 32; ++step) {
    if constexpr (kScaled<Element>)
      multiply_tiles_fp8(sum, a + step * 2, b + step * 2, add || step != 0);
    else
      multiply_tiles(sum, a + step * 2, b + step * 2, add || step != 0);
  }
}

/// A warpgroup: tile after tile, the sums over all stages, then the epilogue.
template <class Element, Epilogue epilogue>
__device__ void compute(Shared<Element, epilogue>& memory, const CUtensorMap* out_map,
                        const HeadTargets& targets, const BlockWork& work, int group) {
  using Memory = Shared<Element, epilogue>;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  int at = 0;
  uint32_t round = 0;
  int held = -1;  // the stage whose products may still be running
  auto give_back = [&] {
    if (held >= 0 && lane < 2) barrier_arrive_at(&memory.empty[held], static_cast<uint32_t>(lane));
  };
  for (int tile = blockIdx.x / 2; tile < work.order.count(); tile += gridDim.x / 2) {
    float sum[kCols / 2];
    for (int stage = 0; stage < work.stages; ++stage) {
      barrier_wait(&memory.full[at], round);
      const uint64_t a = tile_descriptor(&memory.in[at][group * 64][0], 16);
      const uint64_t b = tile_descriptor(&memory.weight[at][0][0], 16);
      pin(sum);
      products_begin();
      multiply_line<Element>(sum, a, b, stage != 0);
      products_commit();
      products_wait<1>();
      pin(sum);
      give_back();
      held = at;
      if (++at == Memory::kStages) {
        at = 0;
        round ^= 1;
      }
    }
    const int2 at_tile = work.order.at(tile);
    const int first_row = (at_tile.x * 2 + static_cast<int>(work.rank)) * kRows + group * 64;
    float2 by_row{};
    if constexpr (kScaled<Element>) {
      const int row = first_row + warp * 16 + lane / 4;
      by_row.x = row < work.m ? work.scales.in[row] : 0;
      by_row.y = row + 8 < work.m ? work.scales.in[row + 8] : 0;
    }
    const auto end_products = [&] {
      products_wait<0>();
      pin(sum);
      give_back();
      held = -1;
      if constexpr (kScaled<Element>) {
        scale_sums(sum, by_row, memory.weight_scales, lane);
        __syncwarp();
        if (lane == 0) barrier_arrive(&memory.scales_read);
      }
    };
    if constexpr (epilogue == Epilogue::heads) {
      const int row = first_row + warp * 16;
      const auto place_all = [&](auto turn, int first_head) {
        // While the last products run.
        turn.load(targets, row + lane / 4, lane, work.m);
        auto second = turn;
        second.load(targets, row + 8 + lane / 4, lane, work.m);
        const int32_t slot = targets.kv_slots[min(row + lane % 16, work.m - 1)];
        end_products();
        turn_row(targets, memory.norms, sum, turn, first_head, 0, lane);
        turn_row(targets, memory.norms, sum, second, first_head, 1, lane);
        send_heads<16 * decltype(turn)::kHalf>(targets, sum, memory.heads[group * 4 + warp], first_head, row,
                                               slot, lane, work.m);
      };
      if (targets.layout.head_dim == 128)
        place_all(Turn<128>{}, at_tile.y * 2);
      else
        place_all(Turn<64>{}, at_tile.y * 4);
    } else if constexpr (epilogue == Epilogue::add) {
      end_products();
      add_sums(memory, out_map, sum, work, first_row, at_tile.y * kCols, group, warp, lane);
    } else if constexpr (epilogue == Epilogue::store_floats) {
      end_products();
      write_floats(work, sum, first_row, at_tile.y * kCols, warp, lane);
    } else {
      end_products();
      store_sums<Memory, epilogue>(memory, out_map, sum, work, first_row, at_tile.y, group, warp, lane);
    }
  }
  if (lane == 0) stores_wait();
}

/// One thread: keeps the ring of stages full.
template <class Element, Epilogue epilogue>
__device__ void bring(Shared<Element, epilogue>& memory, const CUtensorMap* in_map,
                      const CUtensorMap* weight_map, const BlockWork& work) {
  using Memory = Shared<Element, epilogue>;
  int at = 0;
  uint32_t round = 0, tiles = 0;
  for (int tile = blockIdx.x / 2; tile < work.order.count(); tile += gridDim.x / 2, ++tiles) {
    const int2 place = work.order.at(tile);
    const int row = (place.x * 2 + static_cast<int>(work.rank)) * kRows;
    const int col = place.y * kCols + static_cast<int>(work.rank) * (kCols / 2);
    for (int stage = 0; stage < work.stages; ++stage) {
      barrier_wait(&memory.empty[at], round ^ 1);
      // The weight's scales come with the last stage: those of the tile before are read by then.
      const bool with_scales = kScaled<Element> && stage == work.stages - 1;
      const auto scale_bytes = static_cast<uint32_t>(min(kCols, work.n - place.y * kCols) * sizeof(float));
      if (with_scales) barrier_wait(&memory.scales_read, (tiles & 1) ^ 1);
      barrier_expect(&memory.full[at], (kRows + kCols) * kLine + (with_scales ? scale_bytes : 0));
      if (with_scales)
        copy_bytes(memory.weight_scales, work.scales.weight + place.y * kCols, scale_bytes, &memory.full[at]);
      copy_box(&memory.in[at][0][0], in_map, stage * kDepth<Element>, row, &memory.full[at]);
      copy_box_to_all(&memory.weight[at][work.rank * (kCols / 2)][0], weight_map, stage * kDepth<Element>,
                      col, &memory.full[at], 3);
      if (++at == Memory::kStages) {
        at = 0;
        round ^= 1;
      }
    }
  }
}
#endif

// GPUs before Hopper have no clusters, and nothing of this kernel.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define SHEAF_PAIR_OF_BLOCKS
#else
#define SHEAF_PAIR_OF_BLOCKS __cluster_dims__(2)
#endif

/// `in_map`: in [m, k]; `weight_map`: weight [n, k]; `out_map`: out as bf16 [m, n], or as Element [m, n / 2]
/// where the epilogue is swiglu; `out` [m, n], where it is add or store_floats; `targets`, where it is heads.
template <class Element, Epilogue epilogue>
__global__ SHEAF_PAIR_OF_BLOCKS __launch_bounds__(384, 1) void multiply_kernel(
    const __grid_constant__ CUtensorMap in_map, const __grid_constant__ CUtensorMap weight_map,
    const __grid_constant__ CUtensorMap out_map, float* out, int m, int n, int k,
    const __grid_constant__ Scales scales, const __grid_constant__ HeadTargets targets) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Memory = Shared<Element, epilogue>;
  extern __shared__ uint8_t bytes[];
  Memory& memory = *reinterpret_cast<Memory*>((reinterpret_cast<uintptr_t>(bytes) + 1023) & ~uintptr_t{1023});
  const BlockWork work{out,
                       m,
                       n,
                       (k + kDepth<Element> - 1) / kDepth<Element>,
                       scales,
                       {(m + 2 * kRows - 1) / (2 * kRows), (n + kCols - 1) / kCols},
                       cluster_rank()};
  if (threadIdx.x == 0) {
    for (int i = 0; i < Memory::kStages; ++i) {
      barrier_init(&memory.full[i], 1);
      barrier_init(&memory.empty[i], 16);  // every computing warp of both blocks
    }
    barrier_init(&memory.scales_read, 8);
    fence_barrier_init();
  }
  if constexpr (epilogue == Epilogue::heads) {
    const int at = static_cast<int>(threadIdx.x);
    if (targets.layout.norm != 0 && at < targets.layout.head_dim) {
      memory.norms[0][at] = targets.q_norm[at];
      memory.norms[1][at] = targets.k_norm[at];
    }
  }
  cluster_sync();
  const int warpgroup = this_warpgroup();
  if (warpgroup == 0) {
    keep_registers<40>();
    if (threadIdx.x == 0) bring(memory, &in_map, &weight_map, work);
  } else {
    take_registers<232>();
    compute(memory, &out_map, targets, work, warpgroup - 1);
  }
  // The other block may still write here and arrive here.
  cluster_sync();
#endif
}

template <class Element>
struct Product {
  const Element* in;      ///< [m, k]
  const Element* weight;  ///< [n, k]
  int64_t m, n, k;
  void* out;  ///< as the epilogue says, or null where it is heads
  Scales scales;
  HeadTargets targets;
};

template <class Element, Epilogue epilogue>
bool launch(const Product<Element>& product, int multiprocessors, cudaStream_t stream) {
  using Memory = Shared<Element, epilogue>;
  const auto [in, weight, m, n, k, out, scales, targets] = product;
  CUtensorMap in_map, weight_map, out_map{};
  bool mapped = matrix_map(in, m, k, kRows, in_map) && matrix_map(weight, n, k, kCols / 2, weight_map);
  if (Memory::kOutBlocks > 0)
    mapped = mapped && matrix_map(static_cast<const typename Memory::Out*>(out), m,
                                  epilogue == Epilogue::swiglu ? n / 2 : n,
                                  epilogue == Epilogue::add ? 16 : 64, out_map);
  if (!mapped) throw std::runtime_error("CUDA: the driver refuses a map of a matrix");
  const auto kernel = multiply_kernel<Element, epilogue>;
  constexpr int shared = static_cast<int>(sizeof(Memory)) + 1024;
  static_assert(shared <= 232448, "a Hopper block's shared memory");
  static const bool ready =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared) == cudaSuccess;
  if (!ready) throw std::runtime_error("CUDA: no shared memory for a product");
  kernel<<<multiprocessors / 2 * 2, 384, shared, stream>>>(
      in_map, weight_map, out_map, static_cast<float*>(out), static_cast<int>(m), static_cast<int>(n),
      static_cast<int>(k), scales, targets);
  return true;
}

/// 0 where the kernel cannot run or the sizes are not for it: rows of the tensors are multiples of 16 bytes.
template <class Element>
int multiprocessors_for(int64_t n, int64_t k) {
  static const int multiprocessors = hopper_multiprocessors(multiply_kernel<Element, Epilogue::store>);
  return k * sizeof(Element) % 16 == 0 && n % 8 == 0 ? multiprocessors : 0;
}

/// Whether the epilogue `heads` can place such heads.
inline bool places(const HeadLayout& layout) {
  return (layout.head_dim == 128 || layout.head_dim == 64) && layout.rotary_dim == layout.head_dim &&
         layout.norm != 2;
}
inline int64_t columns(const HeadLayout& layout) {
  return int64_t{layout.heads + 2 * layout.kv_heads} * layout.head_dim;
}

}  // namespace
}  // namespace sheaf::cuda

#pragma once
// Products of rows with the weights of their experts on Hopper, with gates and rounding before results leave:
// the dense kernel (hopper_kernel.h) on tiles that follow from the experts' offsets. Two blocks of a cluster
// take the same 128 rows and neighbouring 256 columns, and each brings half of the rows for both, so rows
// are filled up to 128 and no further. A warpgroup without rows of the tile multiplies nothing. All experts
// lie in one map of weights and all gathered rows in one map of rows: what a tile reads behind its expert's
// rows are rows of others, whose results are not written.
//
// Bytes: a stage of 128 bytes of summed columns is 8 kB of rows and 32 kB of weights a block for 4.2 MFLOP
// (8.4 in e4m3). bench_experts times it beside CUTLASS's kernel.
//
// A sum adds its terms in the order of k, wherever its row lies in a tile.
#include "cuda/gemm/grouped_hopper.h"
#include "cuda/gemm/grouped_tiles.h"
#include "cuda/gemm/hopper_kernel.h"

namespace sheaf::cuda {
namespace {

constexpr int kPairCols = 2 * kCols;  // of a cluster's two tiles

/// Biases of a tile's columns, where the epilogue has them.
template <bool there>
struct TileBias {};
template <>
struct TileBias<true> {
  alignas(1024) float bias[kCols];
};

/// Whether a tile's columns come with numbers of their own: scales or biases.
template <class Element, Epilogue epilogue>
constexpr bool kByColumn = kScaled<Element> || has_bias(epilogue);

template <class Element, Epilogue epilogue>
struct GroupedShared : TileBias<has_bias(epilogue)> {
  static constexpr int kStages = 4;
  /// Values of a tile that leave a row, and as what.
  static constexpr int kOut = is_gated(epilogue) ? kCols / 2 : kCols;
  using Out = std::conditional_t<is_gated(epilogue), Element, bf16>;
  static constexpr int kOutLine = kLine + 16;  // 16 more spread rows over the banks
  alignas(1024) uint8_t in[kStages][kRows][kLine];
  alignas(1024) uint8_t weight[kStages][kCols][kLine];
  alignas(16) uint8_t out[8][16][kOutLine];                       // by warp, on their way out
  alignas(16) float weight_scales[kScaled<Element> ? kCols : 4];  // of the tile that ends next
  int begins[kMostGroups + 1];
  uint64_t full[kStages], empty[kStages], scales_read;
};

/// What a block has to do.
template <class Element>
struct GroupedWork {
  const float* in_scales;      ///< [gathered rows], of e4m3
  const float* weight_scales;  ///< [experts, n], of e4m3
  uint8_t* out;                ///< [gathered rows, n, or n / 2 where the epilogue is gated]
  float* blocks;               ///< [gathered rows, tiles across] of gated values in e4m3
  int n, stages;
  const float* bias;  ///< [experts, n], where the epilogue has one
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/// Writes a warp's 16 rows of a tile, of which `height` are there, by way of shared memory so that whole
/// lines of 128 bytes leave. `to` is the first row's place, `width` the bytes of a row that are there.
template <class Memory, Epilogue epilogue>
__device__ void write_lines(float (&sum)[kCols / 2], uint8_t (*buffer)[Memory::kOutLine], uint8_t* to,
                            int64_t row_bytes, int width, int height, int lane) {
  using Out = typename Memory::Out;
  constexpr int kChunks = kLine / 16;  // of a line
#pragma unroll
  for (int line = 0; line < Memory::kOut * static_cast<int>(sizeof(Out)) / kLine; ++line) {
    __syncwarp();
#pragma unroll
    for (int in_line = 0; in_line < kChunks; in_line += 2) {
      const int j = line * kChunks + in_line;
      uint32_t r[4];
      if constexpr (kScaled<Out>) {
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
      store4(&buffer[lane % 16][(in_line + lane / 16) * 16], r[0], r[1], r[2], r[3]);
    }
    __syncwarp();
    const int byte = line * kLine + lane % 8 * 16;
#pragma unroll
    for (int i = 0; i < 16; i += 4) {
      const int row = i + lane / 8;
      if (row < height && byte < width)
        *reinterpret_cast<uint4*>(to + row * row_bytes + byte) =
            *reinterpret_cast<const uint4*>(&buffer[row][lane % 8 * 16]);
    }
  }
}

/// Plus the biases of a tile's columns.
__device__ inline void add_biases(float (&sum)[kCols / 2], const float* by_col, int lane) {
#pragma unroll
  for (int j = 0; j < kCols / 8; ++j) {
    const float2 more = *reinterpret_cast<const float2*>(by_col + j * 8 + lane % 4 * 2);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sum[j * 4 + 2 * i] += more.x;
      sum[j * 4 + 2 * i + 1] += more.y;
    }
  }
}

/// Clears the sums behind an expert's last column. They are of the next expert's columns and of scales left
/// over in shared memory, and would count when the scale of a row's block is chosen.
__device__ inline void clear_behind(float (&sum)[kCols / 2], int width) {
#pragma unroll
  for (int j = 0; j < kCols / 8; ++j) {
    if (j * 8 < width) continue;
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[j * 4 + i] = 0;
  }
}

/// A warpgroup: tile after tile, the sums over all stages, then the epilogue.
template <class Element, Epilogue epilogue>
__device__ void compute_groups(GroupedShared<Element, epilogue>& memory, const TileList& tiles,
                               const GroupedWork<Element>& work, int group) {
  using Memory = GroupedShared<Element, epilogue>;
  using Out = typename Memory::Out;
  constexpr int kHalf = is_gated(epilogue) ? 2 : 1;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, rank = static_cast<int>(cluster_rank());
  int at = 0;
  uint32_t round = 0;
  int held = -1;  // the stage whose products may still be running
  const auto give_back = [&] {
    if (held >= 0 && lane < 2) barrier_arrive_at(&memory.empty[held], static_cast<uint32_t>(lane));
  };
  const auto go_on = [&] {
    give_back();
    held = at;
    if (++at == Memory::kStages) {
      at = 0;
      round ^= 1;
    }
  };
  const auto end_tile = [&] {
    give_back();
    held = -1;
  };
  const auto scales_are_read = [&] {
    __syncwarp();
    if (kByColumn<Element, epilogue> && lane == 0) barrier_arrive(&memory.scales_read);
  };
  for (int index = blockIdx.x / 2;; index += gridDim.x / 2) {
    const Tile tile = tiles.at<kRows, kPairCols>(index);
    if (tile.height == 0) break;
    const int first_col = tile.first_col + rank * kCols;
    if (group * 64 >= tile.height || first_col >= work.n) {
      for (int stage = 0; stage < work.stages; ++stage) {
        barrier_wait(&memory.full[at], round);
        go_on();
      }
      end_tile();
      scales_are_read();
      continue;
    }
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
      go_on();
    }
    const int from = group * 64 + warp * 16, end_row = tile.first_row + tile.height;
    const int row = tile.first_row + from + lane / 4;
    float2 by_row{};
    if constexpr (kScaled<Element>) {
      by_row.x = row < end_row ? work.in_scales[row] : 0;
      by_row.y = row + 8 < end_row ? work.in_scales[row + 8] : 0;
    }
    products_wait<0>();
    pin(sum);
    end_tile();
    if constexpr (kScaled<Element>) scale_sums(sum, by_row, memory.weight_scales, lane);
    if constexpr (has_bias(epilogue)) add_biases(sum, memory.bias, lane);
    scales_are_read();
    if constexpr (kScaled<Out>) {
      if (work.n - first_col < kCols) clear_behind(sum, work.n - first_col);
      const int across = (work.n + kCols - 1) / kCols;
      const BlockWork rows{nullptr, end_row, work.n, 0, {nullptr, nullptr, work.blocks}, {0, across}, 0};
      gate_and_scale<activation_of(epilogue)>(sum, rows, row, first_col / kCols, lane);
    }
    constexpr int bytes = static_cast<int>(sizeof(Out));
    const int64_t row_bytes = int64_t{work.n / kHalf} * bytes;
    write_lines<Memory, epilogue>(
        sum, memory.out[group * 4 + warp],
        work.out + int64_t{tile.first_row + from} * row_bytes + first_col / kHalf * bytes, row_bytes,
        (work.n - first_col) / kHalf * bytes, tile.height - from, lane);
  }
}

/// One thread: keeps the ring of stages full.
template <class Element, Epilogue epilogue>
__device__ void bring_groups(GroupedShared<Element, epilogue>& memory, const CUtensorMap* in_map,
                             const CUtensorMap* weight_map, const TileList& tiles,
                             const GroupedWork<Element>& work) {
  using Memory = GroupedShared<Element, epilogue>;
  const int rank = static_cast<int>(cluster_rank());
  int at = 0;
  uint32_t round = 0, done = 0;
  for (int index = blockIdx.x / 2;; index += gridDim.x / 2, ++done) {
    const Tile tile = tiles.at<kRows, kPairCols>(index);
    if (tile.height == 0) break;
    const int first_col = tile.first_col + rank * kCols;
    const int64_t weight_row = int64_t{tile.expert} * work.n + first_col;
    for (int stage = 0; stage < work.stages; ++stage) {
      barrier_wait(&memory.empty[at], round ^ 1);
      uint32_t scale_bytes = 0;
      // The weight's scales, and biases, come with the last stage: those of the tile before are read by then.
      if (kByColumn<Element, epilogue> && stage == work.stages - 1) {
        barrier_wait(&memory.scales_read, (done & 1) ^ 1);
        scale_bytes = static_cast<uint32_t>(max(0, min(kCols, work.n - first_col))) * sizeof(float);
      }
      constexpr uint32_t kArrays = kScaled<Element> && has_bias(epilogue) ? 2 : 1;
      barrier_expect(&memory.full[at], (kRows + kCols) * kLine + kArrays * scale_bytes);
      if (kScaled<Element> && scale_bytes > 0)
        copy_bytes(memory.weight_scales, work.weight_scales + weight_row, scale_bytes, &memory.full[at]);
      if constexpr (has_bias(epilogue))
        if (scale_bytes > 0) copy_bytes(memory.bias, work.bias + weight_row, scale_bytes, &memory.full[at]);
      copy_box_to_all(&memory.in[at][rank * (kRows / 2)][0], in_map, stage * kDepth<Element>,
                      tile.first_row + rank * (kRows / 2), &memory.full[at], 3);
      copy_box(&memory.weight[at][0][0], weight_map, stage * kDepth<Element>, static_cast<int>(weight_row),
               &memory.full[at]);
      if (++at == Memory::kStages) {
        at = 0;
        round ^= 1;
      }
    }
  }
}
#endif

/// `in_map`: the gathered rows; `weight_map`: [experts × n, k].
template <class Element, Epilogue epilogue>
__global__ SHEAF_PAIR_OF_BLOCKS __launch_bounds__(384, 1) void multiply_groups_kernel(
    const __grid_constant__ CUtensorMap in_map, const __grid_constant__ CUtensorMap weight_map,
    const int32_t* offsets, int experts, GroupedWork<Element> work) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Memory = GroupedShared<Element, epilogue>;
  extern __shared__ uint8_t bytes[];
  Memory& memory = aligned_shared<Memory>(bytes);
  if (threadIdx.x == 0) {
    for (int i = 0; i < Memory::kStages; ++i) {
      barrier_init(&memory.full[i], 1);
      barrier_init(&memory.empty[i], 16);  // every computing warp of both blocks
    }
    barrier_init(&memory.scales_read, 8);
    fence_barrier_init();
  }
  count_tiles<kRows>(offsets, experts, memory.begins);
  cluster_sync();
  const TileList tiles{offsets, memory.begins, experts, (work.n + kPairCols - 1) / kPairCols};
  const int warpgroup = this_warpgroup();
  if (warpgroup == 0) {
    keep_registers<40>();
    if (threadIdx.x == 0) bring_groups(memory, &in_map, &weight_map, tiles, work);
  } else {
    take_registers<232>();
    compute_groups(memory, tiles, work, warpgroup - 1);
  }
  // The other block may still write here and arrive here.
  cluster_sync();
#endif
}

/// A product of one kind of numbers.
template <class Element>
struct GroupedFactors {
  const Element* in;      ///< [gathered, k]
  const Element* weight;  ///< [experts, n, k]
  const int32_t* offsets;
  int32_t experts;
  int64_t gathered, n, k;
  GroupedWork<Element> work;
};

template <class Element, Epilogue epilogue>
void launch_groups(const GroupedFactors<Element>& factors, cudaStream_t stream) {
  using Memory = GroupedShared<Element, epilogue>;
  const auto kernel = multiply_groups_kernel<Element, epilogue>;
  constexpr int shared = static_cast<int>(sizeof(Memory)) + 1024;
  static_assert(shared <= 232448, "a Hopper block's shared memory");
  static PerDevice<cudaError_t> ready;
  if (!allow_shared(kernel, shared, ready)) throw std::runtime_error("CUDA: no shared memory for experts");
  const CUtensorMap in_map = matrix_map(factors.in, factors.gathered, factors.k, kRows / 2);
  const CUtensorMap weight_map = matrix_map(factors.weight, factors.experts * factors.n, factors.k, kCols);
  GroupedWork<Element> work = factors.work;
  work.n = static_cast<int>(factors.n);
  work.stages = static_cast<int>((factors.k + kDepth<Element> - 1) / kDepth<Element>);
  static PerDevice<int> multiprocessors;
  const int blocks = multiprocessors.get(device_multiprocessors) / 2 * 2;
  kernel<<<static_cast<unsigned>(blocks), 384, shared, stream>>>(in_map, weight_map, factors.offsets,
                                                                 factors.experts, work);
}

}  // namespace
}  // namespace sheaf::cuda

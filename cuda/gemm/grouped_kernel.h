#pragma once
// Products of rows with the weights of their experts, for every GPU from Ampere on. Blocks stay and take tile
// after tile of 128 gathered rows × 256 columns of one expert, eight warps of 64 × 64 each; which tiles there
// are follows from the experts' offsets, which lie in device memory. Rows are read where they are: gathering
// them first would write and read them once more. Stages of 32 summed columns come by asynchronous copies
// into a ring of four, 96 kB. The first stages of the next tile are on their way while results are written.
//
// An H200 reaches 235 to 314 TFLOP/s with 8,192 rows (bench_experts); CUTLASS's kernel reaches twice that and
// is taken there. Ampere and Ada, where this one always runs, were not timed.
//
// Bytes and FLOP: a stage of a full tile is 24 kB for 2.1 MFLOP. With 8,192 rows, 8 of 128 experts, hidden
// 2,048 and experts of 768 wide, gate and up are 412 GFLOP and 0.8 GB of weights, down half of each. An
// expert with few rows is bound by the bytes of its weights; warps leave out sixteens of rows without a row.
//
// In e4m3, stages have 64 summed columns in the same bytes, and a row's values are multiplied by its scale
// and those of the weight's rows at the end. Gated values leave with a scale for each 128 columns of a row.
//
// A sum adds its terms 16 at a time (32 in e4m3) in the order of k, wherever its row lies in a tile.
#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "cuda/base/device_math.h"
#include "cuda/base/launch.h"
#include "cuda/gemm/gemm.h"
#include "cuda/gemm/grouped.h"
#include "cuda/gemm/grouped_tiles.h"
#include "cuda/ops/gates.h"

namespace sheaf::cuda {
namespace {

constexpr int kRows = 128, kCols = 256, kThreads = 256;
constexpr int kLineBytes = 64, kUnits = kLineBytes / 16;  // of a row of a stage
template <class Element>
constexpr int kDepth = kLineBytes / static_cast<int>(sizeof(Element));  // summed columns of a stage
template <class Element>
constexpr bool kScaled = std::is_same_v<Element, e4m3>;
static_assert(kCols / 2 == kFp8Block, "gated values of a tile share a scale");
constexpr int kStages = 4;
constexpr int kStageBytes = (kRows + kCols) * kLineBytes;
constexpr int kShared = kStages * kStageBytes;
static_assert(kThreads * 2 >= kMostGroups, "a thread counts the tiles of two experts");
static_assert(kShared + (kMostGroups + 1) * 4 + 32 <= 101376, "an Ada block's shared memory");
static_assert(kThreads / kUnits == kRows / 2, "a thread brings two rows of input and four of weights");

template <class Element>
struct Factors {
  Grouped<const Element*> rows;
  const Element* weight;       ///< [experts, n, k]
  const float* in_scales;      ///< [rows of the input], of e4m3
  const float* weight_scales;  ///< [experts, n], of e4m3
  int n, k;

  /// The row of the input that a gathered row is.
  __device__ int64_t source(int gathered) const { return rows.sources ? rows.sources[gathered] : gathered; }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
template <class Element>
constexpr bool kMultiplies = true;  // Ada and later GPUs multiply e4m3
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <class Element>
constexpr bool kMultiplies = !kScaled<Element>;
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
/// Where 16 bytes of a row of a stage lie: rows are spread over the banks.
__device__ int place(int row, int unit) {
  return row * kLineBytes + (unit ^ (row / 2 % kUnits)) * 16;
}

/// What a thread copies of every stage of a tile: one unit of two rows of input and of four of weights.
template <class Element>
struct Sources {
  static constexpr int kUnit = 16 / static_cast<int>(sizeof(Element));  // values
  const Element* in[2];                                                 ///< null: such a row is not there
  const Element* weight;
  int cols;  ///< columns of the weights from `weight` on that are there

  __device__ Sources(const Factors<Element>& factors, const Tile& tile) {
    const int line = static_cast<int>(threadIdx.x) / kUnits;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = line + i * (kRows / 2), at = tile.first_row + row;
      in[i] = nullptr;
      if (row >= tile.height) continue;
      in[i] = factors.rows.in + factors.source(at) * factors.k;
    }
    weight = factors.weight + (int64_t{tile.expert} * factors.n + tile.first_col + line) * factors.k;
    cols = factors.n - tile.first_col - line;
  }

  __device__ void bring(const Factors<Element>& factors, uint8_t* stage, int first_k) const {
    const int line = static_cast<int>(threadIdx.x) / kUnits, unit = static_cast<int>(threadIdx.x) % kUnits;
    const int at = first_k + unit * kUnit;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool there = in[i] && at < factors.k;
      copy16(stage + place(line + i * (kRows / 2), unit), there ? in[i] + at : factors.rows.in, there);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      constexpr int kStep = kThreads / kUnits;
      const bool there = i * kStep < cols && at < factors.k;
      copy16(stage + place(kRows + line + i * kStep, unit),
             there ? weight + int64_t{i * kStep} * factors.k + at : factors.weight, there);
    }
  }
};

__device__ inline void multiply_bf16(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline void multiply_e4m3(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// A warp's 64 × 64 sums: four tiles of 16 rows, eight of 8 columns. A lane has rows lane / 4 and 8 further,
/// columns lane % 4 × 2 and the next.
using Sums = float[4][8][4];

/// `height`: rows of the warp that are there. A step of an instruction is 32 bytes of every row.
template <class Element>
__device__ void multiply_stage(Sums& sum, const uint8_t* stage, int warp_row, int warp_col, int height,
                               int lane) {
#pragma unroll
  for (int half = 0; half < kLineBytes / 32; ++half) {
    uint32_t a[4][4], b[4][4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      load4(b[j],
            stage + place(kRows + warp_col + j * 16 + lane / 16 * 8 + lane % 8, half * 2 + lane / 8 % 2));
#pragma unroll
    for (int i = 0; i < 4; ++i)
      load4(a[i], stage + place(warp_row + i * 16 + lane % 16, half * 2 + lane / 16));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i * 16 >= height) continue;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if constexpr (kScaled<Element>)
          multiply_e4m3(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        else
          multiply_bf16(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
    }
  }
}

/// Times the scales of the rows and of the weight's rows.
__device__ inline void scale_sums(Sums& sum, const Factors<e4m3>& factors, const Tile& tile, int warp_row,
                                  int warp_col, int lane) {
  const float* by_col = factors.weight_scales + int64_t{tile.expert} * factors.n;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = warp_row + i * 16 + h * 8 + lane / 4;
      const float by_row = row < tile.height ? factors.in_scales[factors.source(tile.first_row + row)] : 0;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int col = tile.first_col + warp_col + j * 8 + lane % 4 * 2;
        const float2 by = col < factors.n ? *reinterpret_cast<const float2*>(by_col + col) : float2{};
        sum[i][j][2 * h] *= by_row * by.x;
        sum[i][j][2 * h + 1] *= by_row * by.y;
      }
    }
  }
}

/// Plus the biases of the weight's rows.
__device__ inline void add_biases(Sums& sum, const float* bias, int n, const Tile& tile, int warp_col,
                                  int lane) {
  const float* by_col = bias + int64_t{tile.expert} * n;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int col = tile.first_col + warp_col + j * 8 + lane % 4 * 2;
    const float2 more = col < n ? *reinterpret_cast<const float2*>(by_col + col) : float2{};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        sum[i][j][2 * h] += more.x;
        sum[i][j][2 * h + 1] += more.y;
      }
    }
  }
}

/// Writes activation(gate) × up of a tile in e4m3, each row with its scale. `most` [kRows][4] is shared
/// memory. By the whole block.
template <Activation activation>
__device__ void write_rounded(Sums& sum, const Factors<e4m3>& factors, const Tile& tile, float (*most)[4],
                              int warp_row, int warp, const Fp8Rows& out, int lane) {
  const int ffn = factors.n / 2, blocks = (factors.n + kCols - 1) / kCols;
  const auto row_of = [&](int i, int h) { return warp_row + i * 16 + h * 8 + lane / 4; };
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float largest = 0;
#pragma unroll
      for (int j = 0; j < 8; j += 2) {  // eight of gate, then the eight of up
#pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; ++e) {
          sum[i][j][e] = gated<activation>(sum[i][j][e], sum[i][j + 1][e]);
          largest = fmaxf(largest, fabsf(sum[i][j][e]));
        }
      }
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
      if (lane % 4 == 0) most[row_of(i, h)][warp % 4] = largest;
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (row_of(i, h) >= tile.height) continue;
      const int64_t row = tile.first_row + row_of(i, h);
      const float* four = most[row_of(i, h)];
      const Fp8Scale scale = Fp8Scale::coarse(fmaxf(fmaxf(four[0], four[1]), fmaxf(four[2], four[3])));
      if (lane % 4 == 0 && warp % 4 == 0) out.blocks[row * blocks + tile.first_col / kCols] = scale.scale;
        // Two groups of eight make sixteen values in a row, as interleaved() has them.
#pragma unroll
      for (int j = 0; j < 8; j += 4) {
        const int col = tile.first_col / 2 + warp % 4 * 32 + j * 4 + lane % 4 * 4;
        if (col >= ffn) continue;
        *reinterpret_cast<uint32_t*>(out.values + row * ffn + col) =
            pack_e4m3(sum[i][j][2 * h] * scale.inverse, sum[i][j][2 * h + 1] * scale.inverse) |
            pack_e4m3(sum[i][j + 2][2 * h] * scale.inverse, sum[i][j + 2][2 * h + 1] * scale.inverse) << 16;
      }
    }
  }
  __syncthreads();  // the shared memory is read
}

/// Writes a warp's sums from (row, col) on: activation(gate) × up where the epilogue is gated.
template <Epilogue epilogue, class Element>
__device__ void write(const Sums& sum, const Factors<Element>& factors, const Tile& tile, int warp_row,
                      int warp_col, bf16* out, int lane) {
  constexpr bool kGated = is_gated(epilogue);
  constexpr int kStep = kGated ? 2 : 1;  // eight of gate, then the eight of up
  const int width = factors.n / kStep, first_col = tile.first_col + warp_col;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = warp_row + i * 16 + h * 8 + lane / 4;
      if (row >= tile.height) continue;
      bf16* const to = out + int64_t{tile.first_row + row} * width;
#pragma unroll
      for (int j = 0; j < 8; j += kStep) {
        if (first_col + j * 8 >= factors.n) continue;
        float low = sum[i][j][2 * h], high = sum[i][j][2 * h + 1];
        if constexpr (kGated) {
          low = gated<activation_of(epilogue)>(low, sum[i][j + 1][2 * h]);
          high = gated<activation_of(epilogue)>(high, sum[i][j + 1][2 * h + 1]);
        }
        const int col = (first_col + j * 8) / kStep + lane % 4 * 2;
        *reinterpret_cast<uint32_t*>(to + col) = pack(low, high);
      }
    }
  }
}
#endif

/// `out` [gathered rows, n], or [gathered rows, n / 2] where the epilogue is gated; `rounded` instead where
/// it is gated and values are e4m3. `bias` [experts, n], where the epilogue has one.
template <class Element, Epilogue epilogue>
__global__ __launch_bounds__(kThreads, 1) void grouped_kernel(Factors<Element> factors, bf16* out,
                                                              Fp8Rows rounded, const float* bias) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (kMultiplies<Element>) {
    constexpr bool kRounds = kScaled<Element> && is_gated(epilogue);
    extern __shared__ __align__(128) uint8_t ring[];
    __shared__ int begins[kMostGroups + 1];
    count_tiles<kRows>(factors.rows.offsets, factors.rows.experts, begins);
    const TileList tiles{factors.rows.offsets, begins, factors.rows.experts, (factors.n + kCols - 1) / kCols};
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int warp_row = warp / 4 * 64, warp_col = warp % 4 * 64;
    const int stages = (factors.k + kDepth<Element> - 1) / kDepth<Element>;
    int index = static_cast<int>(blockIdx.x);
    Tile tile = tiles.at<kRows, kCols>(index);
    Sources<Element> sources(factors, tile);
    const auto fetch = [&](int stage) {
      if (stage < stages)
        sources.bring(factors, ring + stage % kStages * kStageBytes, stage * kDepth<Element>);
      commit_copies();  // always, so that groups count stages
    };
    const auto begin = [&] {
      for (int stage = 0; stage < kStages - 1; ++stage) fetch(stage);
    };
    if (tile.height > 0) begin();
    while (tile.height > 0) {
      Sums sum{};
      for (int stage = 0; stage < stages; ++stage) {
        wait_copies<kStages - 2>();
        __syncthreads();
        fetch(stage + kStages - 1);
        multiply_stage<Element>(sum, ring + stage % kStages * kStageBytes, warp_row, warp_col,
                                tile.height - warp_row, lane);
      }
      const Tile done = tile;
      tile = tiles.at<kRows, kCols>(index += static_cast<int>(gridDim.x));
      __syncthreads();  // the ring is read
      if constexpr (kScaled<Element>) scale_sums(sum, factors, done, warp_row, warp_col, lane);
      if constexpr (has_bias(epilogue)) add_biases(sum, bias, factors.n, done, warp_col, lane);
      // Rows find their scales in the ring, before it is filled again.
      if constexpr (kRounds)
        write_rounded<activation_of(epilogue)>(sum, factors, done, reinterpret_cast<float(*)[4]>(ring),
                                               warp_row, warp, rounded, lane);
      if (tile.height > 0) {
        sources = Sources<Element>(factors, tile);
        begin();
      }
      if constexpr (!kRounds) write<epilogue>(sum, factors, done, warp_row, warp_col, out, lane);
    }
  }
#endif
}

template <class Element, Epilogue epilogue>
void launch(const Factors<Element>& factors, bf16* out, const Fp8Rows& rounded, cudaStream_t stream,
            const float* bias = nullptr) {
  const auto kernel = grouped_kernel<Element, epilogue>;
  static PerDevice<cudaError_t> ready;
  static PerDevice<int> multiprocessors;
  if (!allow_shared(kernel, kShared, ready))
    throw std::runtime_error(
        "CUDA: this GPU has too little shared memory for experts (101 kB per block are needed); set "
        "engine.device: cpu");
  const auto blocks = static_cast<unsigned>(multiprocessors.get(device_multiprocessors));
  kernel<<<blocks, kThreads, kShared, stream>>>(factors, out, rounded, bias);
}

}  // namespace
}  // namespace sheaf::cuda

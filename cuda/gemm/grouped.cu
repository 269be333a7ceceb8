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
// A sum adds its terms 16 at a time in the order of k, wherever its row lies in a tile.
#include <algorithm>
#include <stdexcept>

#include "cuda/base/device_math.h"
#include "cuda/base/launch.h"
#include "cuda/gemm/gemm.h"
#include "cuda/gemm/grouped.h"
#include "cuda/ops/gates.h"

namespace sheaf::cuda {
namespace {

constexpr int kRows = 128, kCols = 256, kThreads = 256;
constexpr int kDepth = 32;  // summed columns of a stage
constexpr int kLineBytes = 2 * kDepth, kUnits = kLineBytes / 16;
constexpr int kStages = 4;
constexpr int kStageBytes = (kRows + kCols) * kLineBytes;
constexpr int kShared = kStages * kStageBytes;
static_assert(kThreads * 2 == kMostGroups, "a thread counts the tiles of two experts");
static_assert(kShared + (kMostGroups + 1) * 4 + 32 <= 101376, "an Ada block's shared memory");
static_assert(kThreads / kUnits == kRows / 2, "a thread brings two rows of input and four of weights");

struct Factors {
  GroupedRows rows;
  const bf16* weight;  ///< [experts, n, k]
  int n, k;
};

/// A part of the results: rows [first_row, first_row + height) of the gathered ones, all of one expert.
struct Tile {
  int expert, first_row, height, first_col;  ///< height 0: there is none
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
/// begins[e] = the tiles, one above the other, of the experts before e; begins[experts] = those of all. By
/// the whole block.
__device__ void count_tiles(const GroupedRows& rows, int* begins) {
  __shared__ int sums[kThreads / 32];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const auto tiles_of = [&](int expert) {
    if (expert >= rows.experts) return 0;
    return (rows.offsets[expert + 1] - rows.offsets[expert] + kRows - 1) / kRows;
  };
  const int first = 2 * thread, own = tiles_of(first), sum = own + tiles_of(first + 1);
  int up_to = sum;  // of the warp's threads up to this one
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, up_to, offset);
    if (lane >= offset) up_to += other;
  }
  if (lane == 31) sums[warp] = up_to;
  __syncthreads();
  int before = up_to - sum;
  for (int i = 0; i < warp; ++i) before += sums[i];
  if (first <= rows.experts) begins[first] = before;
  if (first < rows.experts) begins[first + 1] = before + own;
  if (first + 2 == kMostGroups && rows.experts == kMostGroups) begins[kMostGroups] = before + sum;
  __syncthreads();
}

/// Tile `index`: an expert's tiles follow one another column by column, so that those computed at once share
/// their weights.
__device__ Tile tile_at(const Factors& factors, const int* begins, int index) {
  const int across = (factors.n + kCols - 1) / kCols, experts = factors.rows.experts;
  if (index >= begins[experts] * across) return {0, 0, 0, 0};
  int low = 0, high = experts;  // the last expert whose tiles begin at or before the index
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (begins[middle] * across <= index ? low : high) = middle;
  }
  const int down = begins[low + 1] - begins[low], inside = index - begins[low] * across;
  const int first_row = factors.rows.offsets[low] + inside % down * kRows;
  return {low, first_row, min(kRows, factors.rows.offsets[low + 1] - first_row), inside / down * kCols};
}

/// Where 16 bytes of a row of a stage lie: rows are spread over the banks.
__device__ int place(int row, int unit) {
  return row * kLineBytes + (unit ^ (row / 2 % kUnits)) * 16;
}

/// What a thread copies of every stage of a tile: one unit of two rows of input and of four of weights.
struct Sources {
  const bf16* in[2];  ///< null: such a row is not there
  const bf16* weight;
  int cols;  ///< columns of the weights from `weight` on that are there

  __device__ Sources(const Factors& factors, const Tile& tile) {
    const int line = static_cast<int>(threadIdx.x) / kUnits;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = line + i * (kRows / 2), at = tile.first_row + row;
      in[i] = nullptr;
      if (row >= tile.height) continue;
      in[i] = factors.rows.in + int64_t{factors.rows.sources ? factors.rows.sources[at] : at} * factors.k;
    }
    weight = factors.weight + (int64_t{tile.expert} * factors.n + tile.first_col + line) * factors.k;
    cols = factors.n - tile.first_col - line;
  }

  __device__ void bring(const Factors& factors, uint8_t* stage, int first_k) const {
    const int line = static_cast<int>(threadIdx.x) / kUnits, unit = static_cast<int>(threadIdx.x) % kUnits;
    const int at = first_k + unit * 8;
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

__device__ void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// A warp's 64 × 64 sums: four tiles of 16 rows, eight of 8 columns. A lane has rows lane / 4 and 8 further,
/// columns lane % 4 × 2 and the next.
using Sums = float[4][8][4];

/// `height`: rows of the warp that are there.
__device__ void multiply_stage(Sums& sum, const uint8_t* stage, int warp_row, int warp_col, int height,
                               int lane) {
#pragma unroll
  for (int half = 0; half < kDepth / 16; ++half) {
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
      for (int j = 0; j < 8; ++j) multiply(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }
}

/// Writes a warp's sums from (row, col) on: activation(gate) × up where the epilogue is gated.
template <Epilogue epilogue>
__device__ void write(const Sums& sum, const Factors& factors, const Tile& tile, int warp_row, int warp_col,
                      bf16* out, int lane) {
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
          low = activated<activation_of(epilogue)>(low) * sum[i][j + 1][2 * h];
          high = activated<activation_of(epilogue)>(high) * sum[i][j + 1][2 * h + 1];
        }
        const int col = (first_col + j * 8) / kStep + lane % 4 * 2;
        *reinterpret_cast<uint32_t*>(to + col) = pack(low, high);
      }
    }
  }
}
#endif

template <Epilogue epilogue>
__global__ __launch_bounds__(kThreads, 1) void grouped_kernel(Factors factors, bf16* out) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) uint8_t ring[];
  __shared__ int begins[kMostGroups + 1];
  count_tiles(factors.rows, begins);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row = warp / 4 * 64, warp_col = warp % 4 * 64;
  const int stages = (factors.k + kDepth - 1) / kDepth;
  int index = static_cast<int>(blockIdx.x);
  Tile tile = tile_at(factors, begins, index);
  Sources sources(factors, tile);
  const auto fetch = [&](int stage) {
    if (stage < stages) sources.bring(factors, ring + stage % kStages * kStageBytes, stage * kDepth);
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
      multiply_stage(sum, ring + stage % kStages * kStageBytes, warp_row, warp_col, tile.height - warp_row,
                     lane);
    }
    const Tile done = tile;
    tile = tile_at(factors, begins, index += static_cast<int>(gridDim.x));
    __syncthreads();  // the ring is read
    if (tile.height > 0) {
      sources = Sources(factors, tile);
      begin();
    }
    write<epilogue>(sum, factors, done, warp_row, warp_col, out, lane);
  }
#endif
}

template <Epilogue epilogue>
void launch(const GroupedRows& rows, const bf16* weight, int64_t n, int64_t k, bf16* out,
            cudaStream_t stream) {
  const auto kernel = grouped_kernel<epilogue>;
  static PerDevice<cudaError_t> ready;
  static PerDevice<int> multiprocessors;
  if (!allow_shared(kernel, kShared, ready))
    throw std::runtime_error(
        "CUDA: this GPU has too little shared memory for experts (101 kB per block are needed); set "
        "engine.device: cpu");
  const int blocks = multiprocessors.get([] {
    int device = 0, count = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    return count;
  });
  kernel<<<static_cast<unsigned>(blocks), kThreads, kShared, stream>>>(
      {rows, weight, static_cast<int>(n), static_cast<int>(k)}, out);
}

}  // namespace

void multiply_grouped(const GroupedRows& rows, const bf16* weight, int64_t n, int64_t k, bf16* out,
                      cudaStream_t stream) {
  launch<Epilogue::store>(rows, weight, n, k, out, stream);
}

void multiply_grouped_gated(Activation activation, const GroupedRows& rows, const bf16* weight, int64_t ffn,
                            int64_t k, bf16* out, cudaStream_t stream) {
  if (activation == Activation::silu)
    launch<Epilogue::swiglu>(rows, weight, 2 * ffn, k, out, stream);
  else
    launch<Epilogue::geglu>(rows, weight, 2 * ffn, k, out, stream);
}

}  // namespace sheaf::cuda

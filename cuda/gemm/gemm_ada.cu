// Products of e4m3 with what follows them, for GPUs that have the matrix instruction but not Hopper's units:
// Ada, and those after Hopper. A block takes a tile of 128 × 256, eight warps of 64 × 64 each; stages of 64
// summed columns come by asynchronous copies into a ring of four, 96 kB.
#include "cuda/base/device_math.h"
#include "cuda/base/launch.h"
#include "cuda/gemm/gemm.h"
#include "cuda/ops/gates.h"

namespace sheaf::cuda {
namespace {

constexpr int kRows = 128, kCols = 256, kThreads = 256;
constexpr int kDepth = 64;  // summed columns of a stage, a byte each
constexpr int kStages = 4;
constexpr int kStageBytes = (kRows + kCols) * kDepth;
static_assert(kCols / 2 == kFp8Block, "gated values of a tile share a scale");

struct Factors {
  const e4m3* in;              ///< [m, k]
  const e4m3* weight;          ///< [n, k]
  const float* in_scales;      ///< [m]
  const float* weight_scales;  ///< [n]
  int m, n, k;
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
constexpr int kTogether = 8;  // tiles down that are computed side by side, for the cache

/// Where 16 bytes of a row of a stage lie: rows are spread over the banks.
__device__ int place(int row, int unit) {
  return row * kDepth + (unit ^ (row / 2 % 4)) * 16;
}

__device__ void bring(const Factors& factors, uint8_t* stage, int first_row, int first_col, int first_k) {
  constexpr int kUnits = kDepth / 16;
#pragma unroll
  for (int i = threadIdx.x; i < (kRows + kCols) * kUnits; i += kThreads) {
    const int row = i / kUnits, unit = i % kUnits, at = first_k + unit * 16;
    const bool input = row < kRows;
    const int from = input ? first_row + row : first_col + row - kRows;
    const bool there = at < factors.k && from < (input ? factors.m : factors.n);
    const e4m3* matrix = input ? factors.in : factors.weight;
    copy16(stage + place(row, unit), matrix + (there ? int64_t{from} * factors.k + at : 0), there);
  }
  commit_copies();
}

__device__ void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// A warp's 64 × 64 sums: four tiles of 16 rows, eight of 8 columns. A lane has rows lane / 4 and 8 further,
/// columns lane % 4 × 2 and the next.
using Sums = float[4][8][4];

__device__ void multiply_stage(Sums& sum, const uint8_t* stage, int warp_row, int warp_col, int lane) {
#pragma unroll
  for (int half = 0; half < kDepth / 32; ++half) {
    uint32_t a[4][4], b[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      load4(a[i], stage + place(warp_row + i * 16 + lane % 16, half * 2 + lane / 16));
#pragma unroll
    for (int j = 0; j < 4; ++j)
      load4(b[j],
            stage + place(kRows + warp_col + j * 16 + lane / 16 * 8 + lane % 8, half * 2 + lane / 8 % 2));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) multiply(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }
}

/// activation(gate) × up of a tile in e4m3, each row with its scale. `most` [kRows][4] is shared memory.
template <Activation activation>
__device__ void write_gated(Sums& sum, const Factors& factors, float (*most)[4], const Fp8Rows& out,
                            int first_row, int tile_across, int warp_row, int warp, int lane) {
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
          sum[i][j][e] = activated<activation>(sum[i][j][e]) * sum[i][j + 1][e];
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
      const int row = first_row + row_of(i, h);
      if (row >= factors.m) continue;
      const float* four = most[row_of(i, h)];
      const Fp8Scale scale = Fp8Scale::coarse(fmaxf(fmaxf(four[0], four[1]), fmaxf(four[2], four[3])));
      if (lane % 4 == 0 && warp % 4 == 0) out.blocks[int64_t{row} * blocks + tile_across] = scale.scale;
        // Two groups of eight make sixteen values in a row, as interleaved() has them.
#pragma unroll
      for (int j = 0; j < 8; j += 4) {
        const int col = tile_across * kFp8Block + warp % 4 * 32 + j * 4 + lane % 4 * 4;
        if (col >= ffn) continue;
        *reinterpret_cast<uint32_t*>(out.values + int64_t{row} * ffn + col) =
            pack_e4m3(sum[i][j][2 * h] * scale.inverse, sum[i][j][2 * h + 1] * scale.inverse) |
            pack_e4m3(sum[i][j + 2][2 * h] * scale.inverse, sum[i][j + 2][2 * h + 1] * scale.inverse) << 16;
      }
    }
  }
}

template <Epilogue epilogue>
__device__ void write_plain(const Sums& sum, const Factors& factors, void* out, int first_row, int first_col,
                            int lane) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = first_row + i * 16 + h * 8 + lane / 4;
      if (row >= factors.m) continue;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int col = first_col + j * 8 + lane % 4 * 2;
        if (col >= factors.n) continue;
        const int64_t at = int64_t{row} * factors.n + col;
        float2 pair = make_float2(sum[i][j][2 * h], sum[i][j][2 * h + 1]);
        if constexpr (epilogue == Epilogue::store) {
          *reinterpret_cast<uint32_t*>(static_cast<bf16*>(out) + at) = pack(pair.x, pair.y);
        } else {
          auto* to = reinterpret_cast<float2*>(static_cast<float*>(out) + at);
          if constexpr (epilogue == Epilogue::add) pair = make_float2(pair.x + to->x, pair.y + to->y);
          *to = pair;
        }
      }
    }
  }
}
#endif

/// `out` is as the epilogue says; `gated` instead where it is gated.
template <Epilogue epilogue>
__global__ __launch_bounds__(kThreads, 1) void multiply_kernel(Factors factors, void* out, Fp8Rows gated) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  extern __shared__ __align__(128) uint8_t ring[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int down = (factors.m + kRows - 1) / kRows, across = (factors.n + kCols - 1) / kCols;
  const int first_down = static_cast<int>(blockIdx.x) / (kTogether * across) * kTogether;
  const int height = min(kTogether, down - first_down);
  const int inside = static_cast<int>(blockIdx.x) - first_down * across;
  const int first_row = (first_down + inside % height) * kRows, tile_across = inside / height;
  const int first_col = tile_across * kCols, warp_row = warp / 4 * 64, warp_col = warp % 4 * 64;
  const int stages = (factors.k + kDepth - 1) / kDepth;
  const auto fetch = [&](int stage) {
    if (stage < stages)
      bring(factors, ring + stage % kStages * kStageBytes, first_row, first_col, stage * kDepth);
    else
      commit_copies();  // so that groups count stages
  };
  for (int stage = 0; stage < kStages - 1; ++stage) fetch(stage);
  Sums sum{};
  for (int stage = 0; stage < stages; ++stage) {
    wait_copies<kStages - 2>();
    __syncthreads();
    fetch(stage + kStages - 1);
    multiply_stage(sum, ring + stage % kStages * kStageBytes, warp_row, warp_col, lane);
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = first_row + warp_row + i * 16 + h * 8 + lane / 4;
      const float by_row = row < factors.m ? factors.in_scales[row] : 0;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int col = first_col + warp_col + j * 8 + lane % 4 * 2;
        const float2 by_col = col < factors.n ? *reinterpret_cast<const float2*>(factors.weight_scales + col)
                                              : make_float2(0, 0);
        sum[i][j][2 * h] *= by_row * by_col.x;
        sum[i][j][2 * h + 1] *= by_row * by_col.y;
      }
    }
  }
  if constexpr (is_gated(epilogue))
    write_gated<activation_of(epilogue)>(sum, factors, reinterpret_cast<float(*)[4]>(ring), gated, first_row,
                                         tile_across, warp_row, warp, lane);
  else
    write_plain<epilogue>(sum, factors, out, first_row + warp_row, first_col + warp_col, lane);
#endif
}

template <Epilogue epilogue>
bool launch(const Factors& factors, void* out, const Fp8Rows& gated, cudaStream_t stream) {
  constexpr int shared = kStages * kStageBytes;
  const auto kernel = multiply_kernel<epilogue>;
  static PerDevice<cudaError_t> ready;
  if (!allow_shared(kernel, shared, ready)) return false;
  const int down = (factors.m + kRows - 1) / kRows, across = (factors.n + kCols - 1) / kCols;
  kernel<<<static_cast<unsigned>(down * across), kThreads, shared, stream>>>(factors, out, gated);
  return true;
}

Factors factors_of(const Fp8Rows& in, const Fp8Weight& weight, int64_t m, int64_t n, int64_t k) {
  return {in.values,           weight.values,       in.scales,          weight.scales,
          static_cast<int>(m), static_cast<int>(n), static_cast<int>(k)};
}

bool fits(int64_t n, int64_t k) {
  return ada_fp8_products() && n % 8 == 0 && k % 16 == 0;
}

}  // namespace

bool ada_fp8_products() {
  static PerDevice<bool> can;
  return can.get([] { return capability_for(multiply_kernel<Epilogue::store>) >= 89; });
}

bool multiply_ada(Epilogue epilogue, const Fp8Rows& in, const Fp8Weight& weight, int64_t m, int64_t n,
                  int64_t k, void* out, cudaStream_t stream) {
  if (!fits(n, k)) return false;
  const Factors factors = factors_of(in, weight, m, n, k);
  switch (epilogue) {
    case Epilogue::store:
      return launch<Epilogue::store>(factors, out, {}, stream);
    case Epilogue::store_floats:
      return launch<Epilogue::store_floats>(factors, out, {}, stream);
    case Epilogue::add:
      return launch<Epilogue::add>(factors, out, {}, stream);
    default:
      return false;
  }
}

bool multiply_gated_ada(Activation activation, const Fp8Rows& in, const Fp8Weight& weight, int64_t m,
                        int64_t ffn, int64_t k, const Fp8Rows& out, cudaStream_t stream) {
  if (!fits(2 * ffn, k) || ffn % 16 != 0 || activation == Activation::clamped) return false;
  const Factors factors = factors_of(in, weight, m, 2 * ffn, k);
  return activation == Activation::silu ? launch<Epilogue::swiglu>(factors, nullptr, out, stream)
                                        : launch<Epilogue::geglu>(factors, nullptr, out, stream);
}

}  // namespace sheaf::cuda

// FP8 products by CUTLASS, one scale per row and per column: what our own are compared with. Results are
// bf16, or are added to sums in fp32. Compiled by bench/cutlass_fp8, once for every configuration: SHEAF_ROWS
// and SHEAF_COLS of a tile, SHEAF_PINGPONG 0 or 1, SHEAF_FAST 1 where sums stay in the matrix unit, SHEAF_ADD
// 1 where results are added.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/epilogue/fusion/sm90_callbacks_tma_warpspecialized.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

namespace {

namespace fusion = cutlass::epilogue::fusion;
using cutlass::bfloat16_t;
using Value = cutlass::float_e4m3_t;
using TileShape = cute::Shape<cute::Int<SHEAF_ROWS>, cute::Int<SHEAF_COLS>, cute::_128>;
using ClusterShape = cute::Shape<cute::_2, cute::_1, cute::_1>;

#if SHEAF_PINGPONG && SHEAF_FAST
using MainSchedule = cutlass::gemm::KernelTmaWarpSpecializedPingpongFP8FastAccum;
#elif SHEAF_PINGPONG
using MainSchedule = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
#elif SHEAF_FAST
using MainSchedule = cutlass::gemm::KernelTmaWarpSpecializedCooperativeFP8FastAccum;
#else
using MainSchedule = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
#endif
#if SHEAF_PINGPONG
using EndSchedule = cutlass::epilogue::TmaWarpSpecialized;
#else
using EndSchedule = cutlass::epilogue::TmaWarpSpecializedCooperative;
#endif

constexpr auto kRound = cutlass::FloatRoundStyle::round_to_nearest;
using ByColumn = fusion::Sm90RowBroadcast<0, TileShape, float>;
using ByRow = fusion::Sm90ColBroadcast<0, TileShape, float>;
using RowsScaled = fusion::Sm90EVT<fusion::Sm90Compute<cutlass::multiplies, float, float, kRound>, ByRow,
                                   fusion::Sm90AccFetch>;
#if SHEAF_ADD
using Result = float;
using Before = float;
using ColumnsScaled =
    fusion::Sm90EVT<fusion::Sm90Compute<cutlass::multiplies, float, float, kRound>, ByColumn, RowsScaled>;
using Scaled = fusion::Sm90EVT<fusion::Sm90Compute<cutlass::plus, float, float, kRound>, ColumnsScaled,
                               fusion::Sm90SrcFetch<float>>;
#else
using Result = bfloat16_t;
using Before = void;
using Scaled = fusion::Sm90EVT<fusion::Sm90Compute<cutlass::multiplies, bfloat16_t, float, kRound>, ByColumn,
                               RowsScaled>;
#endif
constexpr int kUnit = 16 / static_cast<int>(sizeof(Result));  // values of 16 bytes
using RowMajor = cutlass::layout::RowMajor;
using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, TileShape, ClusterShape,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, Before, RowMajor, kUnit, Result, RowMajor,
    kUnit, EndSchedule, Scaled>::CollectiveOp;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Value, RowMajor, 16, Value,
    cutlass::layout::ColumnMajor, 16, float, TileShape, ClusterShape,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
        sizeof(typename Epilogue::SharedStorage))>,
    MainSchedule>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

/// Sums of two uniform numbers, so that the card draws the power that real values would.
__global__ void fill(uint8_t* out, size_t count, unsigned seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    unsigned x = static_cast<unsigned>(i) * 2654435761u + seed;
    x = (x ^ x >> 15) * 2246822519u;
    x ^= x >> 13;
    const float u = static_cast<float>(x & 0xffff) / 65536.0f + static_cast<float>(x >> 16) / 65536.0f - 1.0f;
    out[i] = __nv_cvt_float_to_fp8(u * 200.0f, __NV_SATFINITE, __NV_E4M3);
  }
}

template <class T>
T* device_memory(size_t count) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, count * sizeof(T)) != cudaSuccess) std::abort();
  return static_cast<T*>(memory);
}

}  // namespace

int main() {
  constexpr int kRows = 8192;
  auto* in = device_memory<uint8_t>(size_t{kRows} * 12288);
  auto* weight = device_memory<uint8_t>(size_t{24576} * 12288);
  auto* out = device_memory<Result>(size_t{kRows} * 24576);
  auto* scales = device_memory<float>(size_t{1} << 18);
  auto* flush = device_memory<uint8_t>(size_t{128} << 20);
  fill<<<1024, 256>>>(in, size_t{kRows} * 12288, 1);
  fill<<<1024, 256>>>(weight, size_t{24576} * 12288, 7);
  cudaMemset(scales, 0, size_t{1} << 20);
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  cutlass::KernelHardwareInfo hardware;
  hardware.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(0);
  // The products of an 8B's and of a 1.7B's layer: q, k, v; attention output; gate, up; down.
  const int sizes[][2] = {{6144, 4096}, {4096, 4096}, {24576, 4096}, {4096, 12288},
                          {4096, 2048}, {2048, 2048}, {12288, 2048}, {2048, 6144}};
  for (const auto& [n, k] : sizes) {
    using cute::make_shape;
    typename Gemm::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGemm,
        {kRows, n, k, 1},
        {reinterpret_cast<Value*>(in),
         cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, make_shape(kRows, k, 1)),
         reinterpret_cast<Value*>(weight),
         cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, make_shape(n, k, 1))},
        {{},
         SHEAF_ADD ? reinterpret_cast<float*>(out) : nullptr,
         cutlass::make_cute_packed_stride(typename Kernel::StrideC{}, make_shape(kRows, n, 1)),
         out,
         cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, make_shape(kRows, n, 1))},
        hardware};
    const typename RowsScaled::Arguments by_row = {{scales, 0.0f, {}}, {}, {}};
#if SHEAF_ADD
    arguments.epilogue.thread = {{{scales, 0.0f, {}}, by_row, {}}, {}, {}};
#else
    arguments.epilogue.thread = {{scales, 0.0f, {}}, by_row, {}};
#endif
    Gemm gemm;
    const size_t bytes = Gemm::get_workspace_size(arguments);
    uint8_t* workspace = bytes > 0 ? device_memory<uint8_t>(bytes) : nullptr;
    if (gemm.can_implement(arguments) != cutlass::Status::kSuccess ||
        gemm.initialize(arguments, workspace) != cutlass::Status::kSuccess) {
      std::fprintf(stderr, "CUTLASS cannot compute %d x %d x %d\n", kRows, n, k);
      return 3;
    }
    std::vector<float> times;
    for (int i = 0; i < 18; ++i) {
      cudaMemsetAsync(flush, i, size_t{128} << 20);
      cudaEventRecord(start);
      gemm.run();
      cudaEventRecord(stop);
      cudaEventSynchronize(stop);
      float milliseconds = 0;
      cudaEventElapsedTime(&milliseconds, start, stop);
      if (i >= 3) times.push_back(milliseconds);
    }
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
      std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
      return 3;
    }
    std::nth_element(times.begin(), times.begin() + 7, times.end());
    std::printf("| %s %d x %d%s%s | %d x %d x %d | %.1f us | %.0f TFLOP/s |\n",
                SHEAF_PINGPONG ? "pingpong" : "cooperative", SHEAF_ROWS, SHEAF_COLS,
                SHEAF_FAST ? ", sums in the unit" : ", sums taken out", SHEAF_ADD ? ", added" : "", kRows, n,
                k, times[7] * 1e3, 2.0 * kRows * n * k / times[7] / 1e9);
    if (workspace) cudaFree(workspace);
  }
}

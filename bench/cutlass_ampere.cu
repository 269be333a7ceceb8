// What CUTLASS's kernels for Ampere and Ada reach, which run on later GPUs, too: products of experts beside
// our kernel for any GPU, and dense products beside cuBLAS, with the gates' own pass.
//   cmake --build build/release --target bench_cutlass_ampere
//   build/release/bench/bench_cutlass_ampere [rows...]
// Experts are those of Qwen3-30B-A3B, rows choose them at random; L2 is flushed before every run; median of
// 15 runs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cublas_v2.h>
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/device/gemm_grouped.h>
#include <cutlass/gemm/device/gemm_universal.h>
#include <cutlass/gemm/kernel/default_gemm_grouped.h>
#include <functional>
#include <random>
#include <type_traits>
#include <vector>

#include "cuda/base/device_memory.h"
#include "cuda/gemm/grouped.h"
#include "cuda/ops/ops.h"

namespace {

using namespace sheaf;
using namespace sheaf::cuda;
using RowMajor = cutlass::layout::RowMajor;
using ColumnMajor = cutlass::layout::ColumnMajor;
template <int kRows, int kCols, int kDepth>
using Size = cutlass::gemm::GemmShape<kRows, kCols, kDepth>;

void check_blas(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "cuBLAS: %s\n", cublasGetStatusString(status));
  std::exit(3);
}
void check_cutlass(cutlass::Status status) {
  if (status == cutlass::Status::kSuccess) return;
  std::fprintf(stderr, "CUTLASS: %s\n", cutlassGetStatusString(status));
  std::exit(3);
}

double seconds(const std::function<void()>& run) {
  static const DeviceMemory<std::byte> flush(128 << 20);
  const Event start, stop;
  std::vector<float> times;
  for (int i = 0; i < 18; ++i) {
    check(cudaMemsetAsync(flush.data(), i, static_cast<size_t>(flush.size()), nullptr), "flush");
    check(cudaEventRecord(start.get()), "event");
    run();
    check(cudaEventRecord(stop.get()), "event");
    check(cudaEventSynchronize(stop.get()), "run");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.get(), stop.get()), "event");
    if (i >= 3) times.push_back(milliseconds);
  }
  check(cudaGetLastError(), "run");
  std::nth_element(times.begin(), times.begin() + 7, times.end());
  return times[7] / 1000.0;
}

DeviceMemory<bf16> random_values(int64_t count, float spread) {
  DeviceMemory<bf16> memory(count);
  fill_random(memory.data(), count, spread, 1, nullptr);
  return memory;
}

/// A tile of CUTLASS's, the part of a warp, and how many stages wait in shared memory.
template <class Block_, class Warp_, int kStages_, class Value_ = cutlass::bfloat16_t>
struct Tile {
  using Block = Block_;
  using Warp = Warp_;
  using Value = Value_;
  static constexpr int kStages = kStages_;
  static constexpr bool kNarrow = std::is_same_v<Value, cutlass::float_e4m3_t>;
  using Arch = std::conditional_t<kNarrow, cutlass::arch::Sm89, cutlass::arch::Sm80>;
  using Instruction = Size<16, 8, kNarrow ? 32 : 16>;
  static constexpr int kUnit = 16 / static_cast<int>(sizeof(Value));
  static void print() {
    std::printf("| %s CUTLASS %d x %d x %d, warps of %d x %d, %d stages", kNarrow ? "FP8 " : "bf16",
                Block::kM, Block::kN, Block::kK, Warp::kM, Warp::kN, kStages);
  }
};

template <class Value>
struct Group {
  DeviceMemory<Value> in, weight;
  DeviceMemory<bf16> out;
  std::vector<int32_t> offsets;
  DeviceMemory<int32_t> device_offsets;
  int n, k;
  int experts() const { return static_cast<int>(offsets.size()) - 1; }
  double flops() const { return 2.0 * offsets.back() * n * k; }
};

template <class T>
DeviceMemory<T> sent(const std::vector<T>& values) {
  DeviceMemory<T> memory(static_cast<int64_t>(values.size()));
  check(cudaMemcpy(memory.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "send");
  return memory;
}

template <class Tile, class Memory>
void time_group(const Group<Memory>& group) {
  using Value = typename Tile::Value;
  using Result = cutlass::bfloat16_t;
  using Kernel = typename cutlass::gemm::kernel::DefaultGemmGrouped<
      Value, RowMajor, cutlass::ComplexTransform::kNone, Tile::kUnit, Value, ColumnMajor,
      cutlass::ComplexTransform::kNone, Tile::kUnit, Result, RowMajor, float, cutlass::arch::OpClassTensorOp,
      typename Tile::Arch, typename Tile::Block, typename Tile::Warp, typename Tile::Instruction,
      cutlass::epilogue::thread::LinearCombination<Result, 8, float, float,
                                                   cutlass::epilogue::thread::ScaleType::OnlyAlphaScaling>,
      cutlass::gemm::threadblock::GemmBatchedIdentityThreadblockSwizzle, Tile::kStages,
      cutlass::gemm::kernel::GroupScheduleMode::kDeviceOnly>::GemmKernel;
  using Gemm = cutlass::gemm::device::GemmGrouped<Kernel>;
  std::vector<cutlass::gemm::GemmCoord> sizes;
  std::vector<Value*> in, weight;
  std::vector<Result*> out;
  std::vector<int64_t> by_k, by_n;
  for (int e = 0; e < group.experts(); ++e) {
    const int64_t first = group.offsets[static_cast<size_t>(e)];
    sizes.emplace_back(static_cast<int>(group.offsets[static_cast<size_t>(e) + 1] - first), group.n, group.k);
    in.push_back(reinterpret_cast<Value*>(group.in.data() + first * group.k));
    weight.push_back(reinterpret_cast<Value*>(group.weight.data() + int64_t{e} * group.n * group.k));
    out.push_back(reinterpret_cast<Result*>(group.out.data() + first * group.n));
    by_k.push_back(group.k);
    by_n.push_back(group.n);
  }
  const auto sizes_there = sent(sizes);
  const auto in_there = sent(in), weight_there = sent(weight);
  const auto out_there = sent(out);
  const auto by_k_there = sent(by_k), by_n_there = sent(by_n);
  int device = 0, multiprocessors = 0;
  check(cudaGetDevice(&device), "device");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "device");
  const int blocks = multiprocessors * Gemm::maximum_active_blocks();
  Tile::print();
  if (blocks <= 0) return static_cast<void>(std::printf(" | does not fit |\n"));
  Gemm gemm;
  check_cutlass(gemm.initialize({sizes_there.data(),
                                 group.experts(),
                                 blocks,
                                 {1.0f},
                                 in_there.data(),
                                 weight_there.data(),
                                 out_there.data(),
                                 out_there.data(),
                                 by_k_there.data(),
                                 by_k_there.data(),
                                 by_n_there.data(),
                                 by_n_there.data()}));
  const double taken = seconds([&] { check_cutlass(gemm.run()); });
  std::printf(" | %.1f us | %.0f TFLOP/s |\n", taken * 1e6, group.flops() / taken / 1e12);
}

void time_ours(const Group<bf16>& group) {
  const double taken = seconds([&] {
    multiply_grouped(GroupedRows{group.in.data(), nullptr, group.device_offsets.data(), group.experts()},
                     group.weight.data(), group.n, group.k, group.out.data(), nullptr);
  });
  std::printf("| bf16 ours for any GPU | %.1f us | %.0f TFLOP/s |\n", taken * 1e6,
              group.flops() / taken / 1e12);
}

template <class Tile>
void time_dense(int m, int n, int k, bool add) {
  using Value = cutlass::bfloat16_t;
  const auto in = random_values(int64_t{m} * k, 1), weight = random_values(int64_t{n} * k, 0.02f);
  const DeviceMemory<float> out(int64_t{m} * n);
  const double flops = 2.0 * m * n * k;
  const auto time = [&](auto result) {
    using Result = decltype(result);
    constexpr int kWide = 16 / static_cast<int>(sizeof(Result));
    using Gemm = cutlass::gemm::device::GemmUniversal<
        Value, RowMajor, Value, ColumnMajor, Result, RowMajor, float, cutlass::arch::OpClassTensorOp,
        cutlass::arch::Sm80, typename Tile::Block, typename Tile::Warp, Size<16, 8, 16>,
        cutlass::epilogue::thread::LinearCombination<Result, kWide, float, float>,
        cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<8>, Tile::kStages>;
    auto* const to = reinterpret_cast<Result*>(out.data());
    Gemm gemm;
    check_cutlass(gemm.initialize({cutlass::gemm::GemmUniversalMode::kGemm,
                                   {m, n, k},
                                   1,
                                   {1.0f, add ? 1.0f : 0.0f},
                                   in.data(),
                                   weight.data(),
                                   to,
                                   to,
                                   0,
                                   0,
                                   0,
                                   0,
                                   k,
                                   k,
                                   n,
                                   n}));
    const double taken = seconds([&] { check_cutlass(gemm.run()); });
    Tile::print();
    std::printf(" | %.1f us | %.0f TFLOP/s |\n", taken * 1e6, flops / taken / 1e12);
  };
  add ? time(float{}) : time(cutlass::bfloat16_t{});
}

void time_cublas(int m, int n, int k, bool add) {
  static cublasHandle_t blas = [] {
    cublasHandle_t made = nullptr;
    check_blas(cublasCreate(&made));
    return made;
  }();
  const auto in = random_values(int64_t{m} * k, 1), weight = random_values(int64_t{n} * k, 0.02f);
  const DeviceMemory<float> out(int64_t{m} * n);
  const float one = 1, beta = add ? 1 : 0;
  const double taken = seconds([&] {
    check_blas(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, weight.data(), CUDA_R_16BF, k,
                            in.data(), CUDA_R_16BF, k, &beta, out.data(), add ? CUDA_R_32F : CUDA_R_16BF, n,
                            CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  });
  std::printf("| bf16 cuBLAS | %.1f us | %.0f TFLOP/s |\n", taken * 1e6, 2.0 * m * n * k / taken / 1e12);
  if (add || n % 2 != 0) return;
  const DeviceMemory<bf16> gated(int64_t{m} * n / 2);
  const double gates = seconds([&] {
    apply_gates(Activation::silu, reinterpret_cast<const bf16*>(out.data()), m, n / 2, gated.data(), nullptr);
  });
  std::printf("| bf16 gates, a pass of their own | %.1f us | |\n", gates * 1e6);
}

using Wide = Tile<Size<128, 256, 32>, Size<64, 64, 32>, 3>;
using Tall = Tile<Size<256, 128, 32>, Size<64, 64, 32>, 3>;
using Square = Tile<Size<128, 128, 32>, Size<64, 64, 32>, 4>;
using Deep = Tile<Size<128, 128, 64>, Size<64, 64, 64>, 3>;
using WideFp8 = Tile<Size<128, 256, 64>, Size<64, 64, 64>, 3, cutlass::float_e4m3_t>;
using SquareFp8 = Tile<Size<128, 128, 64>, Size<64, 64, 64>, 3, cutlass::float_e4m3_t>;

template <class Value>
Group<Value> make_group(int rows, int experts, int per_token, int n, int k) {
  Group<Value> group;
  group.n = n;
  group.k = k;
  std::mt19937 random(1);
  std::vector<int32_t> counts(static_cast<size_t>(experts) + 1);
  for (int i = 0; i < rows * per_token; ++i) ++counts[random() % static_cast<unsigned>(experts) + 1];
  for (size_t e = 1; e < counts.size(); ++e) counts[e] += counts[e - 1];
  group.offsets = counts;
  group.device_offsets = sent(counts);
  group.out.grow(int64_t{counts.back()} * n);
  const auto fill = [](DeviceMemory<Value>& memory, int64_t count, float spread) {
    auto wide = random_values(count, spread);
    if constexpr (std::is_same_v<Value, bf16>) {
      memory = std::move(wide);
    } else {
      memory.grow(count);
      const DeviceMemory<float> scales(count / 1024);
      round_weights(wide.data(), count / 1024, 1024, memory.data(), scales.data(), nullptr);
      check(cudaDeviceSynchronize(), "round");
    }
  };
  fill(group.in, int64_t{counts.back()} * k, 1);
  fill(group.weight, int64_t{experts} * n * k, 0.02f);
  return group;
}

void time_experts(int rows, const char* name, int n, int k) {
  std::printf("\n%s, %d rows\n", name, rows);
  {
    const auto group = make_group<bf16>(rows, 128, 8, n, k);
    time_ours(group);
    time_group<Wide>(group);
    time_group<Tall>(group);
    time_group<Square>(group);
    time_group<Deep>(group);
  }
  const auto group = make_group<e4m3>(rows, 128, 8, n, k);
  time_group<WideFp8>(group);
  time_group<SquareFp8>(group);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {8192, 1024};
  try {
    for (const int rows : sizes) {
      time_experts(rows, "gate and up", 1536, 2048);
      time_experts(rows, "down", 2048, 768);
    }
    const struct {
      const char* name;
      int n, k;
      bool add;
    } products[] = {{"8B gate, up", 24576, 4096, false},
                    {"8B down, adds", 4096, 12288, true},
                    {"1.7B gate, up", 12288, 2048, false},
                    {"1.7B attention output, adds", 2048, 2048, true}};
    for (const auto& [name, n, k, add] : products) {
      std::printf("\n%s\n", name);
      time_cublas(8192, n, k, add);
      time_dense<Wide>(8192, n, k, add);
      time_dense<Tall>(8192, n, k, add);
      time_dense<Square>(8192, n, k, add);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}

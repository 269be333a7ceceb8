// One layer's steps on the device, each alone: our matrix products beside cuBLAS, and the steps between them.
//   cmake --build build/release --target bench_layer && build/release/bench/bench_layer [rows...]
// L2 is flushed before every run; median of 15 runs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cublas_v2.h>
#include <functional>
#include <vector>

#include "core/model/e4m3.h"
#include "core/model/shapes.h"
#include "cuda/base/device_memory.h"
#include "cuda/gemm/gemm.h"
#include "cuda/ops/ops.h"

namespace {

using namespace sheaf;
using namespace sheaf::cuda;

class Bench {
 public:
  Bench() {
    check(cudaEventCreate(&start_), "event");
    check(cudaEventCreate(&stop_), "event");
    cublasCreate(&blas_);
    workspace_.grow(64 << 20);
    cublasSetWorkspace(blas_, workspace_.data(), 64 << 20);
    flush_.grow(256 << 20);
  }

  double seconds(const std::function<void()>& run) {
    std::vector<float> times;
    for (int i = 0; i < 18; ++i) {
      check(cudaMemsetAsync(flush_.data(), i, 128 << 20), "flush");
      check(cudaEventRecord(start_), "event");
      run();
      check(cudaEventRecord(stop_), "event");
      check(cudaEventSynchronize(stop_), "run");
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, start_, stop_), "event");
      if (i >= 3) times.push_back(milliseconds);
    }
    check(cudaGetLastError(), "run");
    std::nth_element(times.begin(), times.begin() + 7, times.end());
    return times[7] / 1000.0;
  }

  void blas(const bf16* weight, const bf16* in, int64_t m, int64_t n, int64_t k, void* out, bool fp32,
            bool add) {
    const float one = 1, beta = add ? 1 : 0;
    const auto status = cublasGemmEx(
        blas_, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(n), static_cast<int>(m), static_cast<int>(k), &one,
        weight, CUDA_R_16BF, static_cast<int>(k), in, CUDA_R_16BF, static_cast<int>(k), &beta, out,
        fp32 ? CUDA_R_32F : CUDA_R_16BF, static_cast<int>(n), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS) fail("cuBLAS: {}", cublasGetStatusString(status));
  }

  template <class T>
  static std::vector<T> fetched(const DeviceMemory<T>& memory) {
    std::vector<T> values(static_cast<size_t>(memory.size()));
    check(cudaMemcpy(values.data(), memory.data(), values.size() * sizeof(T), cudaMemcpyDeviceToHost),
          "fetch");
    return values;
  }
  static DeviceMemory<bf16> widened(const DeviceMemory<e4m3>& narrow) {
    std::vector<bf16> wide;
    for (const e4m3 value : fetched(narrow)) wide.push_back(__float2bfloat16(from_e4m3(value.__x)));
    DeviceMemory<bf16> memory(narrow.size());
    check(cudaMemcpy(memory.data(), wide.data(), wide.size() * 2, cudaMemcpyHostToDevice), "send");
    return memory;
  }

  DeviceMemory<bf16> random(int64_t count, float spread) {
    DeviceMemory<bf16> memory(count);
    fill_random(memory.data(), count, spread, seed_++, nullptr);
    return memory;
  }

  void product(const char* name, Epilogue epilogue, int64_t m, int64_t n, int64_t k) {
    const auto in = random(m * k, 1), weight = random(n * k, 0.02f);
    const DeviceMemory<float> out(m * n);
    const DeviceMemory<bf16> gated(m * n);
    const bool add = epilogue == Epilogue::add;
    const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const double theirs = seconds([&] {
      blas(weight.data(), in.data(), m, n, k, out.data(), add, add);
      if (epilogue == Epilogue::swiglu)
        apply_gates(Activation::silu, reinterpret_cast<const bf16*>(out.data()), static_cast<int32_t>(m),
                    static_cast<int32_t>(n / 2), gated.data(), nullptr);
    });
    bool can = true;
    const double ours = seconds([&] {
      can = can && multiply_hopper(epilogue, in.data(), weight.data(), m, n, k, out.data(), nullptr);
    });
    const double narrow = fp8_seconds(epilogue, in, weight, m, n, k, out);
    std::printf(
        "| %-8s %6ld x %6ld x %6ld | cuBLAS %7.1f us %4.0f TFLOP/s | ours %7.1f us %4.0f TFLOP/s | %.3f x "
        "| ours in FP8 %7.1f us %4.0f TFLOP/s | %.3f x |\n",
        name, static_cast<long>(m), static_cast<long>(n), static_cast<long>(k), theirs * 1e6,
        flops / theirs / 1e12, can ? ours * 1e6 : 0.0, can ? flops / ours / 1e12 : 0.0, theirs / ours,
        narrow * 1e6, flops / narrow / 1e12, std::min(theirs, ours) / narrow);
  }

  /// The same product of the same numbers in e4m3.
  double fp8_seconds(Epilogue epilogue, const DeviceMemory<bf16>& in, const DeviceMemory<bf16>& weight,
                     int64_t m, int64_t n, int64_t k, const DeviceMemory<float>& out) {
    const DeviceMemory<e4m3> values(m * k), weights(n * k), gated(m * n / 2);
    const DeviceMemory<float> scales(m), weight_scales(n), gated_scales(m), blocks(m * fp8_blocks(n / 2));
    const Fp8Rows rows{values.data(), scales.data()};
    round_rows(in.data(), static_cast<int32_t>(m), static_cast<int32_t>(k), rows, nullptr);
    round_weights(weight.data(), n, k, weights.data(), weight_scales.data(), nullptr);
    const Fp8Weight narrow{weights.data(), weight_scales.data()};
    return seconds([&] {
      if (epilogue == Epilogue::swiglu) {
        const Fp8Rows to{gated.data(), gated_scales.data(), blocks.data()};
        if (!multiply_gated_hopper(Activation::silu, rows, narrow, m, n / 2, k, to, nullptr))
          fail("no FP8 product");
        align_rows(to, static_cast<int32_t>(m), static_cast<int32_t>(n / 2), nullptr);
      } else if (!multiply_hopper(epilogue, rows, narrow, m, n, k, out.data(), nullptr)) {
        fail("no FP8 product");
      }
    });
  }

  /// What FP8 costs in accuracy: the sums in the matrix unit against fp32 sums of the same e4m3 values, and
  /// those against the sums of the numbers before they were rounded.
  void fp8_errors(int64_t k) {
    constexpr int64_t m = 256, n = 512;
    const auto in = random(m * k, 1), weight = random(n * k, 0.02f);
    const DeviceMemory<e4m3> values(m * k), weights(n * k);
    const DeviceMemory<float> scales(m), weight_scales(n), exact(m * n), same(m * n), sums(m * n);
    const Fp8Rows rows{values.data(), scales.data()};
    round_rows(in.data(), static_cast<int32_t>(m), static_cast<int32_t>(k), rows, nullptr);
    round_weights(weight.data(), n, k, weights.data(), weight_scales.data(), nullptr);
    multiply_hopper(Epilogue::store_floats, rows, {weights.data(), weight_scales.data()}, m, n, k,
                    sums.data(), nullptr);
    blas(weight.data(), in.data(), m, n, k, exact.data(), true, false);
    // E4M3 values are bf16 values.
    const auto a = widened(values), b = widened(weights);
    blas(b.data(), a.data(), m, n, k, same.data(), true, false);
    const auto right = fetched(exact), close = fetched(same), got = fetched(sums), by_row = fetched(scales),
               by_col = fetched(weight_scales);
    double rounding = 0, summing = 0, square = 0;
    for (size_t i = 0; i < right.size(); ++i) {
      const double scaled = static_cast<double>(close[i]) * static_cast<double>(by_row[i / n]) *
                            static_cast<double>(by_col[i % n]);
      rounding += (scaled - static_cast<double>(right[i])) * (scaled - static_cast<double>(right[i]));
      summing += (scaled - static_cast<double>(got[i])) * (scaled - static_cast<double>(got[i]));
      square += static_cast<double>(right[i]) * static_cast<double>(right[i]);
    }
    std::printf("| FP8 errors, %5ld summed | rounding values %.5f | summing in the matrix unit %.5f |\n",
                static_cast<long>(k), std::sqrt(rounding / square), std::sqrt(summing / square));
  }

  void between(const ModelConfig& config, int32_t rows) {
    const int64_t heads = config.heads + 2 * config.kv_heads;
    const auto qkv = random(rows * heads * config.head_dim, 1);
    const DeviceMemory<float> x(int64_t{rows} * config.hidden), ones(config.ffn),
        rope(int64_t{rows} * config.head_dim);
    const DeviceMemory<bf16> normed(int64_t{rows} * config.hidden);
    const DeviceMemory<f16> q(int64_t{rows} * config.heads * config.head_dim),
        keys(int64_t{rows} * config.kv_heads * config.head_dim),
        values(int64_t{rows} * config.kv_heads * config.head_dim);
    std::vector<int32_t> slots(static_cast<size_t>(rows));
    for (int32_t i = 0; i < rows; ++i) slots[static_cast<size_t>(i)] = i;
    DeviceMemory<int32_t> kv_slots(rows);
    check(cudaMemcpy(kv_slots.data(), slots.data(), slots.size() * 4, cudaMemcpyHostToDevice), "slots");
    check(cudaMemset(x.data(), 0, static_cast<size_t>(x.size()) * 4), "clear");
    check(cudaMemset(ones.data(), 0, static_cast<size_t>(ones.size()) * 4), "clear");
    check(cudaMemset(rope.data(), 0, static_cast<size_t>(rope.size()) * 4), "clear");
    HeadLayout layout{};
    layout.heads = config.heads;
    layout.kv_heads = config.kv_heads;
    layout.head_dim = layout.padded_dim = layout.rotary_dim = config.head_dim;
    layout.norm = 1;
    layout.eps = 1e-6f;
    layout.slots = rows;
    auto print = [&](const char* name, double bytes, double time) {
      std::printf("| %-24s | %7.1f us | %.2f TB/s |\n", name, time * 1e6, bytes / time / 1e12);
    };
    print("norm", 6.0 * rows * config.hidden, seconds([&] {
            rms_norm(x.data(), nullptr, ones.data(), rows, config.hidden, 1e-6f, normed.data(), nullptr);
          }));
    const HeadTargets targets{nullptr, ones.data(), ones.data(), rope.data(),  kv_slots.data(),
                              layout,  q.data(),    keys.data(), values.data()};
    print("place heads", 4.0 * rows * static_cast<double>(heads) * config.head_dim,
          seconds([&] { place_heads(qkv.data(), rows, targets, nullptr); }));
    const auto weight = random(heads * config.head_dim * config.hidden, 0.02f);
    const double fused = seconds(
        [&] { multiply_heads_hopper(normed.data(), weight.data(), rows, config.hidden, targets, nullptr); });
    std::printf("| qkv with heads           | %7.1f us | %.0f TFLOP/s |\n", fused * 1e6,
                2.0 * rows * static_cast<double>(heads) * config.head_dim * config.hidden / fused / 1e12);
    const DeviceMemory<e4m3> narrow(normed.size()), narrow_weight(weight.size());
    const DeviceMemory<float> scales(rows), weight_scales(heads * config.head_dim);
    const Fp8Rows narrow_rows{narrow.data(), scales.data()};
    print("norm in FP8", 5.0 * rows * config.hidden, seconds([&] {
            rms_norm(x.data(), nullptr, ones.data(), rows, config.hidden, 1e-6f, narrow_rows, nullptr);
          }));
    round_rows(qkv.data(), rows, config.hidden, narrow_rows, nullptr);  // any numbers but zeros
    round_weights(weight.data(), heads * config.head_dim, config.hidden, narrow_weight.data(),
                  weight_scales.data(), nullptr);
    const double narrow_fused = seconds([&] {
      multiply_heads_hopper(narrow_rows, {narrow_weight.data(), weight_scales.data()}, rows, config.hidden,
                            targets, nullptr);
    });
    std::printf(
        "| qkv with heads, FP8      | %7.1f us | %.0f TFLOP/s |\n", narrow_fused * 1e6,
        2.0 * rows * static_cast<double>(heads) * config.head_dim * config.hidden / narrow_fused / 1e12);
    const auto logits_weight = random(int64_t{config.vocab} * config.hidden, 0.02f);
    const DeviceMemory<float> logits(int64_t{1024} * config.vocab);
    const DeviceMemory<GreedyResult> results(1024);
    const DeviceMemory<GreedyPick> picks(1024);
    check(cudaMemset(picks.data(), 0, 1024 * sizeof(GreedyPick)), "clear");
    const double flops = 2.0 * 1024 * config.vocab * config.hidden;
    const double time = seconds([&] {
      blas(logits_weight.data(), normed.data(), std::min(rows, 1024), config.vocab, config.hidden,
           logits.data(), true, false);
    });
    std::printf("| logits of 1024            | %7.1f us | %.0f TFLOP/s |\n", time * 1e6, flops / time / 1e12);
    print("pick of 1024", 4.0 * 1024 * config.vocab, seconds([&] {
            pick_greedy(logits.data(), picks.data(), nullptr, 1024, config.vocab, results.data(), nullptr);
          }));
  }

 private:
  cudaEvent_t start_{}, stop_{};
  cublasHandle_t blas_{};
  DeviceMemory<std::byte> workspace_, flush_;
  uint64_t seed_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<int32_t> rows;
  for (int i = 1; i < argc; ++i) rows.push_back(std::atoi(argv[i]));
  if (rows.empty()) rows = {512, 2048, 8192};
  Bench bench;
  for (const int64_t k : {2048, 4096, 12288}) bench.fp8_errors(k);
  for (const char* shape : {"qwen3-8b", "qwen3-1.7b"}) {
    const ModelConfig config = shape_by_name(shape);
    std::printf("%s\n", shape);
    const int64_t q = int64_t{config.heads} * config.head_dim,
                  kv = int64_t{config.kv_heads} * config.head_dim;
    for (int32_t m : rows) {
      bench.product("qkv", Epilogue::store, m, q + 2 * kv, config.hidden);
      bench.product("o", Epilogue::add, m, config.hidden, q);
      bench.product("gate-up", Epilogue::swiglu, m, int64_t{2} * config.ffn, config.hidden);
      bench.product("down", Epilogue::add, m, config.hidden, config.ffn);
    }
    bench.between(config, rows.back());
  }
}

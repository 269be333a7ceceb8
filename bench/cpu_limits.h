#pragma once
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <string_view>
#include <vector>

#include "cpu/products.h"

/// What the machine can do at most, measured by the benchmarks that compare with it.
namespace sheaf {

inline double best_seconds(const std::function<void()>& body) {
  double best = 1e9;
  double spent = 0;
  for (int i = 0; i < 200 && (i < 5 || spent < 0.3); ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

/// The multiply with everything in the first cache.
inline double peak_gflops(const Kernels& kernels, ThreadPool& pool) {
  constexpr int64_t kDepth = 128;
  constexpr int64_t kRepeats = 20000;
  std::vector<float> b(kDepth * kPanel * 4, 0.5f);
  const double seconds = best_seconds([&] {
    pool.run(pool.size(), [&](int64_t, int) {
      std::vector<float> a(5 * kDepth, 0.25f);
      std::vector<float> c(5 * 4 * kPanel);
      const float* rows[5];
      float* outs[5];
      for (int i = 0; i < 5; ++i) {
        rows[i] = a.data() + i * kDepth;
        outs[i] = c.data() + i * 4 * kPanel;
      }
      for (int64_t i = 0; i < kRepeats; ++i)
        kernels.multiply(rows, outs, 5, b.data(), kPanel, kPanel * kDepth, kDepth, 4, true);
    });
  });
  return static_cast<double>(pool.size() * kRepeats * 2 * 5 * 4 * kPanel * kDepth) / seconds / 1e9;
}

/// The same in whole numbers, counting a multiply-add of the values once, however many planes it takes.
inline double peak_gops(const IntKernels& kernels, int planes, ThreadPool& pool) {
  constexpr int64_t kInputs = 512, kRows = 24, kRepeats = 10000;
  const int64_t panel_bytes = kernels.panels.bytes(kInputs, planes);
  const double seconds = best_seconds([&] {
    pool.run(pool.size(), [&](int64_t, int) {
      const std::vector<int8_t> a(static_cast<size_t>(kernels.rows.alone().bytes(kInputs, planes) * kRows),
                                  3),
          b(static_cast<size_t>(2 * panel_bytes), 5);  // kernels fetch the next panel too
      const std::vector<float> scales(kPanel, 1.0f);
      std::vector<float> c(kRows * kPanel);
      float* rows[kRows];
      for (int64_t i = 0; i < kRows; ++i) rows[i] = c.data() + i * kPanel;
      const IntFactors factors{.a = a.data(),
                               .rows = kRows,
                               .b = b.data(),
                               .panels = 1,
                               .panel_stride = panel_bytes,
                               .chunk_stride = kernels.panels.chunk_bytes(planes),
                               .chunks = kernels.panels.chunks(kInputs),
                               .planes = planes};
      for (int64_t i = 0; i < kRepeats; ++i) kernels.multiply(factors, scales.data(), scales.data(), rows);
    });
  });
  return static_cast<double>(pool.size() * kRepeats * 2 * kRows * kPanel * kInputs) / seconds / 1e9;
}

/// Reading a large array once, all threads together.
inline double read_gbytes(const Kernels& kernels, ThreadPool& pool) {
  constexpr int64_t kFloats = int64_t{64} << 20;
  constexpr int64_t kChunk = 1 << 16;
  FloatBuffer data(kFloats, "the array to read");
  std::fill_n(data.data(), kFloats, 1.0f);
  const double seconds = best_seconds([&] {
    pool.run(kFloats / kChunk, [&](int64_t task, int) {
      // One row is a read of b.
      constexpr int64_t kDepth = kChunk / (4 * kPanel);
      const std::vector<float> ones(kDepth, 1.0f);
      const float* row = ones.data();
      float sums[4 * kPanel];
      float* out = sums;
      kernels.multiply(&row, &out, 1, data.data() + task * kChunk, kPanel, kPanel * kDepth, kDepth, 4, false);
    });
  });
  return static_cast<double>(kFloats) * sizeof(float) / seconds / 1e9;
}

#if defined(__aarch64__)
/// kRepeats times 24 independent sums of one instruction: no load, no store. The factors are loaded before: a
/// Neoverse-V1 takes what it has computed itself half as fast.
enum class Multiply : uint8_t { smmla, sdot, fmla };
constexpr int64_t kBareRepeats = 100000, kBareSums = 24;
template <Multiply Which>
void multiply_bare() {
  static constexpr std::array<int8_t, 32> kFactors{3, 5, 7};
  asm volatile("ldp q30, q31, [%0]" ::"r"(kFactors.data()) : "v30", "v31");
  for (int64_t i = 0; i < kBareRepeats; ++i) {
    if constexpr (Which == Multiply::smmla)
      asm volatile(
          ".arch armv8.2-a+i8mm\n"
          ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n"
          "smmla v\\r\\().4s, v30.16b, v31.16b\n.endr" ::
              : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",
                "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23");
    else if constexpr (Which == Multiply::sdot)
      asm volatile(
          ".arch armv8.2-a+dotprod\n"
          ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n"
          "sdot v\\r\\().4s, v30.16b, v31.16b\n.endr" ::
              : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",
                "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23");
    else
      asm volatile(
          ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n"
          "fmla v\\r\\().4s, v30.4s, v31.4s\n.endr" ::
              : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",
                "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23");
  }
}
#endif

/// The instruction that multiplies, alone; 0 where this benchmark does not know it. As above, a multiply-add
/// of two planes counts once and takes three products.
inline double bare_gops([[maybe_unused]] const Products& products, [[maybe_unused]] ThreadPool& pool) {
#if defined(__aarch64__)
  const std::string_view name = products.int_kernels().name;
  const Multiply which = !products.whole_numbers() ? Multiply::fmla
                         : name == "i8mm"          ? Multiply::smmla
                                                   : Multiply::sdot;
  if (products.whole_numbers() && name == "plain") return 0;
  const auto run = which == Multiply::smmla  ? multiply_bare<Multiply::smmla>
                   : which == Multiply::sdot ? multiply_bare<Multiply::sdot>
                                             : multiply_bare<Multiply::fmla>;
  const double operations = which == Multiply::smmla ? 64 : which == Multiply::sdot ? 32 : 8;
  const double seconds = best_seconds([&] { pool.run(pool.size(), [&](int64_t, int) { run(); }); });
  const double products_each = products.whole_numbers() && products.planes() == 2 ? 3 : 1;
  return static_cast<double>(pool.size() * kBareRepeats * kBareSums) * operations / products_each / seconds /
         1e9;
#else
  return 0;
#endif
}

}  // namespace sheaf

// GFLOP/s of the packed multiply for the shapes of the default model, by rows and threads:
//   ninja -C build/release bench_cpu_gemm && build/release/bench/bench_cpu_gemm [threads] [f32|int16|int8]
// The limits it prints are measured beside: the multiply in the first cache, and reading memory.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <vector>

#include "bench/precision.h"
#include "cpu/products.h"

namespace sheaf {
namespace {

double best_seconds(const std::function<void()>& body) {
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
double peak_gflops(const Kernels& kernels, ThreadPool& pool) {
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
double peak_gops(const IntKernels& kernels, int planes, ThreadPool& pool) {
  constexpr int64_t kInputs = 512, kRows = 12, kRepeats = 20000;
  const int64_t panel_bytes = kernels.panels.bytes(kInputs, planes);
  const double seconds = best_seconds([&] {
    pool.run(pool.size(), [&](int64_t, int) {
      const std::vector<int8_t> a(static_cast<size_t>(kernels.rows.alone().bytes(kInputs, planes) * kRows),
                                  3),
          b(static_cast<size_t>(panel_bytes), 5);
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
double read_gbytes(const Kernels& kernels, ThreadPool& pool) {
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

void measure(int threads, CpuPrecision precision) {
  ThreadPool pool(threads);
  const Kernels& kernels = best_kernels();
  const Products products(precision, kernels, pool);
  const double peak = products.whole_numbers() ? peak_gops(products.int_kernels(), products.planes(), pool)
                                               : peak_gflops(kernels, pool);
  const double value_bytes = products.whole_numbers() ? products.planes() : 4;
  const double bandwidth = read_gbytes(kernels, pool);
  fmt::print("{} thread(s), {}: {:.0f} GFLOP/s in the first cache, {:.1f} GB/s from memory\n", threads,
             products.describe(), peak, bandwidth);
  fmt::print("{:>14} {:>6} {:>6} {:>6} {:>9} {:>7} {:>12}\n", "shape", "N", "K", "rows", "GFLOP/s", "GB/s",
             "of limit");
  struct Shape {
    const char* name;
    int64_t outputs, inputs;
  };
  for (const Shape& shape : {Shape{"qkv", 960, 576}, Shape{"o", 576, 576}, Shape{"gate+up", 3072, 576},
                             Shape{"down", 576, 1536}, Shape{"output", 49152, 576}}) {
    // Several copies, so that the weights come from memory as they do in a model of 30 layers.
    const int64_t copies = std::max<int64_t>(1, (int64_t{32} << 20) / (shape.outputs * shape.inputs));
    std::vector<float> weights(static_cast<size_t>(shape.outputs * shape.inputs), 0.01f);
    Matrix matrix;
    matrix.rows = shape.outputs;
    matrix.cols = shape.inputs;
    matrix.data = reinterpret_cast<const std::byte*>(weights.data());
    std::vector<Linear> linears;
    for (int64_t i = 0; i < copies; ++i) linears.push_back(products.pack({&matrix}));
    for (const int64_t rows : {1, 2, 4, 8, 16, 64, 128, 256}) {
      ProductRows x(products);
      x.reserve(rows, shape.inputs, shape.inputs, "rows");
      std::fill_n(x.data(), rows * shape.inputs, 0.5f);
      for (int64_t i = 0; i < rows; ++i) x.ready(i);
      const int64_t stride = round_up_to_panel(shape.outputs);
      std::vector<float> y(static_cast<size_t>(rows * stride));
      const double seconds = best_seconds([&] {
                               for (const Linear& linear : linears)
                                 x.multiply(linear, rows, y.data(), stride);
                             }) /
                             static_cast<double>(copies);
      const auto values = static_cast<double>(shape.outputs * shape.inputs);
      const double flops = 2 * values * static_cast<double>(rows) / seconds / 1e9;
      const double bytes = values * value_bytes / seconds / 1e9;
      fmt::print("{:>14} {:>6} {:>6} {:>6} {:>9.1f} {:>7.1f} {:>11.0f}%\n", shape.name, shape.outputs,
                 shape.inputs, rows, flops, bytes, 100 * std::max(flops / peak, bytes / bandwidth));
    }
  }
}

}  // namespace
}  // namespace sheaf

int main(int argc, char** argv) {
  sheaf::measure(argc > 1 ? std::atoi(argv[1]) : 2, sheaf::precision_of(argc > 2 ? argv[2] : "f32"));
}

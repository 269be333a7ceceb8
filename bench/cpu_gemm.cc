// GFLOP/s of the packed multiply for the shapes of the default model, by rows and threads:
//   ninja -C build/release bench_cpu_gemm && build/release/bench/bench_cpu_gemm [threads] [f32|int16|int8]
// The limits it prints are measured beside: the multiply in the first cache, and reading memory.
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <vector>

#include "bench/cpu_limits.h"
#include "bench/precision.h"
#include "cpu/products.h"

namespace sheaf {
namespace {

void measure(int threads, Precision precision) {
  ThreadPool pool(threads);
  const Kernels& kernels = best_kernels();
  const Products products(precision, kernels, pool);
  const double peak = products.whole_numbers() ? peak_gops(products.int_kernels(), products.planes(), pool)
                                               : peak_gflops(kernels, pool);
  const double bare = bare_gops(products, pool);
  const double value_bytes = products.whole_numbers() ? products.planes() : 4;
  const double bandwidth = read_gbytes(kernels, pool);
  fmt::print("{} thread(s), {}: {:.0f} GFLOP/s in the first cache, {:.1f} GB/s from memory\n", threads,
             products.describe(), peak, bandwidth);
  if (bare > 0) fmt::print("the multiply instruction alone: {:.0f} GFLOP/s\n", bare);
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
                                 products.each_share(rows, [&](const RowShare& share) {
                                   x.multiply(linear, share, y.data(), stride);
                                 });
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

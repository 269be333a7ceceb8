// Each op of the quick CPU backend alone, at the sizes of the default model, against the limit that binds it:
//   ninja -C build/release bench_cpu_ops && build/release/bench/bench_cpu_ops [threads] [f32|int16|int8]
//   [part of an op's name, such as "attention"]
// Ops on the values of a row are compared with copying such rows, 128 of which lie in the second cache;
// attention with the multiply in the first cache; picks with reading memory. Products: bench_cpu_gemm.
#include <cstdlib>
#include <fmt/format.h>
#include <numeric>
#include <string_view>
#include <vector>

#include "bench/cpu_limits.h"
#include "bench/precision.h"
#include "core/engine/step_batch.h"
#include "cpu/attention.h"

namespace sheaf {
namespace {

constexpr int64_t kRows = 128;
constexpr int32_t kPageSize = 16;

ModelConfig default_model() {
  ModelConfig config;
  config.layers.resize(1);
  config.hidden = 576;
  config.ffn = 1536;
  config.heads = 9;
  config.kv_heads = 3;
  config.head_dim = config.rotary_dim = 64;
  config.vocab = 49152;
  return config;
}

class Ops {
 public:
  Ops(int threads, Precision precision, std::string_view wanted)
      : pool_(threads), products_(precision, kernels_, pool_), wanted_(wanted) {}

  void measure() {
    fmt::print("{} thread(s), {}\n", pool_.size(), products_.describe());
    fmt::print("{:<34} {:>10} {:>10} {:>9}\n", "op, 128 rows", "ns a row", "G/s", "of limit");
    copy_rate_ = per_row("copy, 1536 values", 1536,
                         [&](const float* x, float* y, int64_t) { std::copy_n(x, 1536, y); });
    const std::vector<float> weight(1536, 1.0f);
    per_row("norm, 576", 576,
            [&](const float* x, float* y, int64_t) { kernels_.rms_norm(x, weight.data(), 576, 1e-5f, y); });
    per_row("rotation, 12 heads of 64", 768, [&](const float* x, float* y, int64_t) {
      for (int64_t head = 0; head < 12; ++head) rotate(x, 64, y + head * 64);
    });
    per_row(
        "SwiGLU, 1536", 1536,
        [&](const float* x, float* y, int64_t) {
          for (int64_t i = 0; i + 32 <= 1536; i += 32) kernels_.gated_silu(x + i, 32, 1, y + i / 2, kPanel);
        },
        2);
    if (products_.whole_numbers())
      for (const int64_t inputs : {576, 1536}) {
        ProductRows rows(products_);
        rows.reserve(kRows, inputs, inputs, "rows");
        std::fill_n(rows.data(), kRows * inputs, 0.5f);
        per_row(fmt::format("rounding, {}", inputs).c_str(), inputs,
                [&](const float*, float*, int64_t row) { rows.ready(row); });
      }
    for (const int64_t keys : {256, 1024}) softmax(keys);
    for (const int32_t keys : {0, 256, 2000, 16000}) attention(keys);
    for (const int32_t window : {512, 1024}) attention(16000, window);
    picks();
  }

 private:
  /// Body(x, y, row) for 128 rows of `values` values; `repeats`: how often it must run for all of them.
  template <class Body>
  double per_row(const char* what, int64_t values, Body&& body, int64_t repeats = 1) {
    if (!wants(what)) return 0;
    FloatBuffer x(kRows * values, "rows"), y(kRows * values, "rows");
    std::fill_n(x.data(), kRows * values, 0.5f);
    const double seconds = best_seconds([&] {
                             pool_.run(kRows / 4, [&](int64_t task, int) {
                               for (int64_t row = task * 4; row < task * 4 + 4; ++row)
                                 for (int64_t i = 0; i < repeats; ++i)
                                   body(x.data() + row * values, y.data() + row * values, row);
                             });
                           }) /
                           static_cast<double>(kRows);
    const double rate = static_cast<double>(values) / seconds / 1e9;
    print(what, seconds, rate, copy_rate_ > 0 ? rate / copy_rate_ : 1);
    return rate;
  }

  bool wants(std::string_view what) const { return what.find(wanted_) != std::string_view::npos; }

  static void print(std::string_view what, double seconds, double rate, double share) {
    fmt::print("{:<34} {:>10.0f} {:>10.1f} {:>9.2f}\n", what, seconds * 1e9, rate, share);
  }

  void softmax(int64_t keys) {
    const std::vector<float> scales(static_cast<size_t>(keys + kPanel), 0.5f);
    LargeBuffer<int8_t> weights(2 * kRows * keys, "weights");
    per_row(fmt::format("softmax, {} keys of a head", keys).c_str(), keys,
            [&](const float* x, float* y, int64_t row) {
              std::copy_n(x, keys, y);
              if (products_.whole_numbers())
                kernels_.weigh(y, scales.data(), scales.data(), keys, 0, weights.data() + 2 * row * keys,
                               weights.data() + (2 * row + 1) * keys, -INFINITY);
              else
                kernels_.softmax(y, keys);
            });
  }

  /// 128 rows behind each other that all see `shared` keys before them, or those in a window (0: none).
  void attention(int32_t shared, int32_t window = 0) {
    const std::string name = window == 0 ? fmt::format("attention at {} keys, GFLOP", shared)
                                         : fmt::format("… of which {} in a window", window);
    if (!wants(name)) return;
    const ModelConfig config = default_model();
    StepBatch batch;
    const auto rows = static_cast<int32_t>(kRows);
    const int32_t keys = shared + rows;
    batch.pages.resize(static_cast<size_t>((keys + kPageSize - 1) / kPageSize));
    std::iota(batch.pages.begin(), batch.pages.end(), 0);
    batch.spans.push_back({0, keys});
    batch.tiles.push_back({0, 0, rows});
    for (int32_t row = 0; row < rows; ++row) {
      batch.tile_rows.push_back({row, shared + row + 1});
      batch.tokens.push_back(0);
      batch.positions.push_back(shared + row);
      batch.kv_slots.push_back(shared + row);
    }
    const auto attention = products_.whole_numbers()
                               ? make_int_attention(config, kernels_, best_paged_int_kernels(), pool_)
                               : make_float_attention(config, kernels_, pool_);
    attention->allocate(static_cast<int32_t>(batch.pages.size()), kPageSize);
    const std::vector<float> values(960, 0.1f);
    for (int64_t place = 0; place < keys; ++place)
      for (int64_t head = 0; head < config.kv_heads; ++head)
        attention->pool().write(0, head, place, values.data(), values.data());
    const AttentionPlan plan =
        plan_attention(batch, attention->pool(), window, 3, config.kv_heads, pool_.size());
    FloatBuffer queries(kRows * 576, "queries"), out(kRows * 576, "out");
    std::fill_n(queries.data(), kRows * 576, 0.1f);
    const double seconds = best_seconds([&] { attention->run(plan, 0, queries.data(), 576, out.data()); });
    double pairs = 0;
    for (const TileRow& row : batch.tile_rows)
      pairs += window > 0 ? std::min(window, row.visible) : row.visible;
    const double rate = 4 * 64 * 9 * pairs / seconds / 1e9;
    const double limit = products_.whole_numbers() ? peak_gops(best_paged_int_kernels(), 2, pool_)
                                                   : peak_gflops(kernels_, pool_);
    print(name, seconds / static_cast<double>(kRows), rate, rate / limit);
  }

  void picks() {
    const std::string name = fmt::format("pick among {}", default_model().vocab);
    if (!wants(name)) return;
    const auto vocab = static_cast<int64_t>(default_model().vocab);
    FloatBuffer logits(64 * vocab, "logits");
    for (int64_t i = 0; i < 64 * vocab; ++i) logits.data()[i] = static_cast<float>(i * 7919 % 1000) * 0.01f;
    const double seconds = best_seconds([&] {
                             pool_.run(64, [&](int64_t i, int) {
                               pick_token({logits.data() + i * vocab, static_cast<size_t>(vocab)}, {}, {});
                             });
                           }) /
                           64;
    const double rate = static_cast<double>(vocab) / seconds / 1e9;
    print(name, seconds, rate, 4 * rate / read_gbytes(kernels_, pool_));
  }

  ThreadPool pool_;
  const Kernels& kernels_ = best_kernels();
  Products products_;
  std::string_view wanted_;
  double copy_rate_ = 0;
};

}  // namespace
}  // namespace sheaf

int main(int argc, char** argv) {
  sheaf::Ops(argc > 1 ? std::atoi(argv[1]) : 2, sheaf::precision_of(argc > 2 ? argv[2] : "f32"),
             argc > 3 ? argv[3] : "")
      .measure();
}

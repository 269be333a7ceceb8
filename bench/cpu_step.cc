// Tokens a second of a model on the quick CPU backend, by what a step holds:
//   ninja -C build/release bench_cpu_step && build/release/bench/bench_cpu_step build/models/smollm2.gguf
//   [threads] [f32|int16|int8] [part of a step's name and rows, such as "prompts 16 rows"]
// With "experts" in place of the model: a small mixture of experts beside a dense model of the same active
// weights. The limit is the multiply-adds of the weights at the rate of bench_cpu_gemm's first cache, or
// reading them once a step.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <string_view>
#include <vector>

#include "bench/cpu_experts.h"
#include "bench/precision.h"
#include "core/base/error.h"
#include "cpu/cpu_backend.h"
#include "io/model/model_files.h"

namespace sheaf {
namespace {

constexpr int32_t kPageSize = 16;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Processor time of all threads: on a busy machine, with one thread, the time a step takes by itself.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Rows in prompts: each sees a shared span of `shared` keys and its own past.
class Measurement {
 public:
  Measurement(Backend& backend, std::string_view wanted) : backend_(backend), wanted_(wanted) {}

  void run(const char* what, int32_t prompts, int32_t shared, int32_t own, int32_t new_rows, bool all_shared,
           int32_t picks) {
    if (fmt::format("{} {} rows", what, prompts * new_rows).find(wanted_) == std::string::npos) return;
    StepBatch batch;
    int32_t next_page = 0;
    const auto add_pages = [&](int32_t keys) {
      for (int32_t i = 0; i * kPageSize < keys; ++i) batch.pages.push_back(next_page++);
    };
    const int32_t shared_spans = shared == 0 ? 0 : all_shared ? 1 : prompts;
    for (int32_t i = 0; i < shared_spans; ++i) {
      batch.spans.push_back({static_cast<int32_t>(batch.pages.size()), shared});
      add_pages(shared);
      batch.tiles.push_back({i, static_cast<int32_t>(batch.tile_rows.size()), 0});
      for (int32_t p = all_shared ? 0 : i; p < (all_shared ? prompts : i + 1); ++p)
        for (int32_t r = 0; r < new_rows; ++r, ++batch.tiles.back().row_count)
          batch.tile_rows.push_back({p * new_rows + r, shared});
    }
    for (int32_t p = 0; p < prompts; ++p) {
      const auto first_page = static_cast<int32_t>(batch.pages.size());
      const auto span = static_cast<int32_t>(batch.spans.size());
      batch.spans.push_back({first_page, own + new_rows, shared});
      add_pages(own + new_rows);
      batch.tiles.push_back({span, static_cast<int32_t>(batch.tile_rows.size()), new_rows});
      for (int32_t r = 0; r < new_rows; ++r) {
        const int32_t key = own + r;
        batch.tile_rows.push_back({p * new_rows + r, key + 1});
        batch.tokens.push_back((p * 131 + r * 17 + 5) % backend_.config().vocab);
        batch.positions.push_back(shared + key);
        batch.kv_slots.push_back(batch.pages[static_cast<size_t>(first_page + key / kPageSize)] * kPageSize +
                                 key % kPageSize);
      }
    }
    for (int32_t i = 0; i < picks; ++i) {
      batch.picks.emplace_back();
      batch.picks.back().row = batch.rows() - picks + i;
    }
    backend_.allocate_kv(next_page, kPageSize);
    std::vector<Picked> picked(batch.picks.size());
    backend_.step(batch, picked);
    double best = 1e9;
    double best_processor = 1e9;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 50 && (i < 2 || seconds_since(start) < 1.5); ++i) {
      const auto step = std::chrono::steady_clock::now();
      const double processor = processor_seconds();
      backend_.step(batch, picked);
      best = std::min(best, seconds_since(step));
      best_processor = std::min(best_processor, processor_seconds() - processor);
    }
    fmt::print(
        "{:<28} {:>4} rows {:>5} keys {:>8.1f} ms ({:>8.1f} of processor) {:>8.1f} tokens/s {:>6.1f} "
        "GFLOP/s\n",
        what, batch.rows(), shared + own, best * 1e3, best_processor * 1e3, batch.rows() / best,
        flops(batch.rows(), picks) / best / 1e9);
  }

 private:
  double flops(int32_t rows, int32_t picks) const {
    const ModelConfig& c = backend_.config();
    const double attention = 2.0 * c.hidden * c.head_dim * (c.heads + c.kv_heads);
    const double mlp = 3.0 * c.hidden * c.ffn;
    return 2 * (rows * c.layer_count() * (attention + mlp) + static_cast<double>(picks) * c.hidden * c.vocab);
  }

  Backend& backend_;
  std::string_view wanted_;
};

void measure(const char* path, int threads, Precision precision, std::string_view wanted) {
  auto start = std::chrono::steady_clock::now();
  const Model model = load_model(path);
  const double loading = seconds_since(start);
  start = std::chrono::steady_clock::now();
  const double processor = processor_seconds();
  const auto backend = make_quick_backend(model, threads, precision);
  fmt::print("{}: mapped in {:.2f} s, packed in {:.2f} s ({:.2f} of processor)\n", backend->describe(),
             loading, seconds_since(start), processor_seconds() - processor);
  Measurement measurement(*backend, wanted);
  for (const int32_t rows : {16, 64, 128, 256, 512})
    measurement.run("prefill of one prompt", 1, 0, 0, rows, false, 1);
  measurement.run("prefill of 4 prompts", 4, 0, 0, 64, false, 4);
  measurement.run("prefill at 2000 keys", 1, 2000, 0, 128, false, 1);
  for (const int32_t prompts : {1, 2, 4, 8, 16, 32, 64, 128})
    measurement.run("decode, separate prompts", prompts, 256, 8, 1, false, prompts);
  for (const int32_t prompts : {16, 64, 128})
    measurement.run("decode, one shared span", prompts, 1000, 8, 1, true, prompts);
  for (const int32_t prompts : {16, 64})
    measurement.run("decode, the same not shared", prompts, 1000, 8, 1, false, prompts);
}

}  // namespace
}  // namespace sheaf

int main(int argc, char** argv) {
  try {
    if (argc < 2) sheaf::refuse("usage: bench_cpu_step MODEL [threads] [f32|int16|int8] [NAME]");
    const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
    const sheaf::Precision precision = sheaf::precision_of(argc > 3 ? argv[3] : "f32");
    if (argv[1] == std::string_view("experts"))
      sheaf::measure_experts(threads, precision);
    else
      sheaf::measure(argv[1], threads, precision, argc > 4 ? argv[4] : "");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}

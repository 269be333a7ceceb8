// How long it takes from the start of the program to the first step on the GPU, by stage:
//   tools/make_random_model.py --shape qwen3-8b --out /tmp/qwen3-8b
//   ninja -C build/release bench_load_weights && build/release/bench/bench_load_weights /tmp/qwen3-8b
//   build/release/bench/bench_load_weights MODEL host [threads]     reading and rounding alone, without a GPU
// Prints one line of JSON: bytes as they lie on the device, seconds of each stage, GB/s of the weights. For a
// model that is not in the page cache: echo 1 | sudo tee /proc/sys/vm/drop_caches.
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/error.h"
#include "cuda/cuda_backend.h"
#include "cuda/weights/weight_stream.h"
#include "io/model/model_files.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

/// Seconds since the one before.
class Laps {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

std::vector<cuda::WeightSlice> matrices_of(const Model& model) {
  std::vector<cuda::WeightSlice> all;
  const auto add = [&](const Matrix& matrix) {
    all.push_back({&matrix, 0, matrix.rows, Precision::bf16, nullptr});
  };
  add(model.embedding);
  if (!model.config.tied_output) add(model.output);
  for (const LayerWeights& layer : model.layers)
    for (const Matrix* matrix : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down})
      add(*matrix);
  return all;
}

int64_t bytes_of(const std::vector<cuda::WeightSlice>& matrices) {
  int64_t bytes = 0;
  for (const cuda::WeightSlice& matrix : matrices) bytes += matrix.bytes();
  return bytes;
}

class NoSink final : public cuda::WeightSink {
 public:
  void send(int, const std::byte*, int64_t, std::byte*) override {}
  void wait(int) override {}
};

void measure_host(const std::string& path, int threads) {
  Laps laps;
  const Model model = load_model(path);
  const double mapping = laps.lap();
  const auto matrices = matrices_of(model);
  const int64_t bytes = bytes_of(matrices);
  const int buffers = threads + 8;
  const int64_t buffer_bytes = cuda::ring_buffer_bytes(matrices);
  std::vector<std::byte> memory(static_cast<size_t>(buffers * buffer_bytes));
  laps.lap();
  NoSink sink;
  cuda::stream_weights(cuda::cut_to_slices(matrices, buffer_bytes), {memory.data(), buffers, buffer_bytes},
                       threads, sink);
  const double reading = laps.lap();
  fmt::print("{}\n", ordered_json{{"model", path},
                                  {"bytes", bytes},
                                  {"threads", threads},
                                  {"map_s", mapping},
                                  {"read_s", reading},
                                  {"gb_per_s", static_cast<double>(bytes) / reading / 1e9}}
                         .dump());
}

/// One prompt of `rows` tokens in pages 0, 1, …; the last row's next token is wanted.
StepBatch one_prompt(int32_t rows, int32_t page_size, int32_t vocab) {
  StepBatch batch;
  for (int32_t row = 0; row < rows; ++row) {
    batch.tokens.push_back((row * 131 + 5) % vocab);
    batch.positions.push_back(row);
    batch.kv_slots.push_back(row);
    batch.tile_rows.push_back({row, row + 1});
    if (row % page_size == 0) batch.pages.push_back(row / page_size);
  }
  batch.spans.push_back({0, rows});
  batch.tiles.push_back({0, 0, rows});
  batch.picks.emplace_back();
  batch.picks.back().row = rows - 1;
  return batch;
}

void measure_device(const std::string& path) {
  constexpr int32_t kPageSize = 16, kRows = 64;
  Laps laps;
  const Laps start = laps;
  const int64_t before = cuda_free_bytes(0);
  const double context = laps.lap();
  const Model model = load_model(path);
  const double mapping = laps.lap();
  const auto backend = make_cuda_backend(model, {});
  const double uploading = laps.lap();
  // As a job does: most of what is left becomes keys and values.
  const int64_t left = cuda_free_bytes(0);
  const auto pages = static_cast<int32_t>(static_cast<double>(left) * 0.8 /
                                          static_cast<double>(backend->kv_bytes_per_token() * kPageSize));
  backend->allocate_kv(pages, kPageSize);
  const double pool = laps.lap();
  const StepBatch batch = one_prompt(kRows, kPageSize, model.config.vocab);
  std::vector<Picked> picked(1);
  backend->step(batch, picked);
  const double first = laps.lap();
  const double total = Laps(start).lap();
  laps.lap();
  backend->step(batch, picked);
  const double second = laps.lap();
  const int64_t bytes = bytes_of(matrices_of(model));
  fmt::print("{}\n", ordered_json{{"model", path},
                                  {"device", backend->describe()},
                                  {"bytes", bytes},
                                  {"device_bytes", before - left},
                                  {"threads", cuda::reading_threads()},
                                  {"context_s", context},
                                  {"map_s", mapping},
                                  {"weights_and_cublas_s", uploading},
                                  {"gb_per_s", static_cast<double>(bytes) / uploading / 1e9},
                                  {"kv_pool_s", pool},
                                  {"first_step_s", first},
                                  {"second_step_s", second},
                                  {"start_to_first_step_s", total}}
                         .dump());
}

}  // namespace
}  // namespace sheaf

int main(int argc, char** argv) {
  try {
    const std::string_view mode = argc > 2 ? argv[2] : "";
    if (argc < 2 || (argc > 2 && mode != "host"))
      sheaf::refuse("usage: bench_load_weights MODEL [host [threads]]");
    if (mode == "host")
      sheaf::measure_host(argv[1], argc > 3 ? std::atoi(argv[3]) : sheaf::cuda::reading_threads());
    else
      sheaf::measure_device(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}

#include "bench/cpu_experts.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <vector>

#include "core/model/shapes.h"
#include "cpu/cpu_backend.h"

namespace sheaf {
namespace {

constexpr int kRounds = 15;

ModelConfig small_dense() {
  ModelConfig config;
  config.family = "small";
  config.layers.resize(4);
  config.hidden = 768;
  config.ffn = 1536;  // the width of a token's four experts
  config.heads = 12;
  config.kv_heads = 4;
  config.head_dim = config.rotary_dim = 64;
  config.vocab = 4096;
  config.context = 4096;
  config.ropes.push_back(plain_rope(1e6, config.head_dim));
  return config;
}

ModelConfig small_experts() {
  ModelConfig config = small_dense();
  config.experts = {.count = 32, .per_token = 4, .ffn = 384, .normalized = true};
  for (LayerConfig& layer : config.layers) layer.experts = true;
  return config;
}

/// A prompt of `rows` tokens, with the last one picked.
StepBatch prompt_of(int32_t rows, int32_t vocab) {
  StepBatch batch;
  for (int32_t i = 0; i * kPageSize < rows; ++i) batch.pages.push_back(i);
  batch.spans.push_back({0, rows});
  batch.tiles.push_back({0, 0, rows});
  for (int32_t row = 0; row < rows; ++row) {
    batch.tokens.push_back((row * 1777 + 5) % vocab);
    batch.positions.push_back(row);
    batch.kv_slots.push_back(row);
    batch.tile_rows.push_back({row, row + 1});
  }
  batch.picks.emplace_back();
  batch.picks.back().row = rows - 1;
  return batch;
}

double seconds_of(Backend& backend, const StepBatch& batch) {
  std::vector<Picked> picked(batch.picks.size());
  const auto start = std::chrono::steady_clock::now();
  backend.step(batch, picked);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

}  // namespace

void measure_experts(int threads, Precision precision) {
  const ModelConfig shapes[] = {small_dense(), small_experts()};
  std::vector<std::unique_ptr<Backend>> backends;
  for (const ModelConfig& shape : shapes)
    backends.push_back(make_quick_backend(make_random_model(shape, 1), threads, precision));
  const Experts& experts = shapes[1].experts;
  fmt::print("{}: {} of {} experts of {}, beside an MLP of {}\n", backends[0]->describe(), experts.per_token,
             experts.count, experts.ffn, shapes[0].ffn);
  for (const int32_t rows : {64, 128, 256, 512, 1024, 2048}) {
    const StepBatch batch = prompt_of(rows, shapes[0].vocab);
    std::vector<double> times[2], ratios;
    for (const auto& backend : backends) {
      backend->allocate_kv(static_cast<int32_t>(batch.pages.size()), kPageSize);
      seconds_of(*backend, batch);
    }
    for (int round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < 2; ++i) times[i].push_back(seconds_of(*backends[i], batch));
      ratios.push_back(times[0].back() / times[1].back());
    }
    fmt::print(
        "{:>5} tokens {:>6.1f} an expert   dense {:>8.1f} tokens/s   experts {:>8.1f} tokens/s   ratio "
        "{:.2f}\n",
        rows, static_cast<double>(rows) * experts.per_token / experts.count, rows / median(times[0]),
        rows / median(times[1]), median(ratios));
  }
}

}  // namespace sheaf

// What the experts of a layer take on the device, step by step: our grouped products beside CUTLASS's.
//   cmake --build build/release --target bench_experts && build/release/bench/bench_experts [rows...]
// Rows choose experts at random; L2 is flushed before every run; median of 15 runs. TFLOP/s are of useful
// rows.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "cuda/expert_room.h"
#include "cuda/gemm/grouped.h"
#include "cuda/ops/ops.h"

namespace {

using namespace sheaf;
using namespace sheaf::cuda;

struct Shape {
  const char* name;
  int32_t hidden, count, per_token, ffn;
};
constexpr Shape kShapes[] = {{"Qwen3-30B-A3B", 2048, 128, 8, 768},
                             {"OLMoE 1B-7B", 2048, 64, 8, 1024},
                             {"Mixtral 8x7B", 4096, 8, 2, 14336}};

DeviceMemory<bf16> random_values(int64_t count, float spread) {
  DeviceMemory<bf16> memory(count);
  fill_random(memory.data(), count, spread, 1, nullptr);
  return memory;
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

void print(const char* name, double taken, double flops = 0) {
  std::printf("| %-34s | %8.1f us |", name, taken * 1e6);
  if (flops > 0) std::printf(" %4.0f TFLOP/s |", flops / taken / 1e12);
  std::printf("\n");
}

void time_shape(const Shape& shape, int32_t rows) {
  ModelConfig config;
  config.hidden = shape.hidden;
  Experts& experts = config.experts;
  experts.count = shape.count;
  experts.per_token = shape.per_token;
  experts.ffn = shape.ffn;
  ExpertRoom room;
  room.grow(rows, config);
  std::vector<float> logits(static_cast<size_t>(room.logits.size()));
  std::mt19937 random(1);
  for (float& logit : logits) logit = std::normal_distribution<float>()(random);
  check(cudaMemcpy(room.logits.data(), logits.data(), logits.size() * 4, cudaMemcpyHostToDevice), "logits");
  const int64_t hidden = shape.hidden, ffn = shape.ffn, all = int64_t{shape.count} * hidden * ffn;
  const auto in = random_values(rows * hidden, 1), gate_up = random_values(2 * all, 0.02f),
             down = random_values(all, 0.02f);
  const DeviceMemory<float> x(rows * hidden);
  const Routing routing = room.routing();
  const int32_t gathered = rows * shape.per_token;
  const GroupedRows normed{in.data(), routing.sources, routing.offsets, shape.count};
  const GroupedRows copied{room.given.data(), nullptr, routing.offsets, shape.count};
  const GroupedRows gated{room.gated.data(), nullptr, routing.offsets, shape.count};
  const double flops = 2.0 * gathered * static_cast<double>(hidden) * static_cast<double>(ffn);
  std::printf("%s, %d rows\n", shape.name, rows);
  print("choose", seconds([&] {
          route(experts, {room.logits.data(), router_rows(experts), nullptr}, rows, routing, nullptr);
        }));
  print("gather", seconds([&] { gather_choices(experts, rows, routing, nullptr); }));
  print("gate and up, ours", seconds([&] {
          multiply_grouped_gated(Activation::silu, normed, gate_up.data(), ffn, hidden, room.gated.data(),
                                 nullptr);
        }),
        2 * flops);
  print("down, ours",
        seconds([&] { multiply_grouped(gated, down.data(), hidden, ffn, room.given.data(), nullptr); }),
        flops);
  if (room.cutlass.size() > 0) {
    print("copy rows", seconds([&] {
            copy_rows(in.data(), routing.sources, gathered, shape.hidden, room.given.data(), nullptr);
          }));
    print("gate and up, CUTLASS", seconds([&] {
            multiply_grouped_cutlass(copied, gate_up.data(), 2 * ffn, hidden, room.cutlass.data(),
                                     room.gate_up.data(), nullptr);
          }),
          2 * flops);
    print("gates", seconds([&] {
            apply_gates(Activation::silu, room.gate_up.data(), gathered, shape.ffn, room.gated.data(),
                        nullptr);
          }));
    print("down, CUTLASS", seconds([&] {
            multiply_grouped_cutlass(gated, down.data(), hidden, ffn, room.cutlass.data(), room.given.data(),
                                     nullptr);
          }),
          flops);
  }
  print("add up", seconds([&] {
          sum_experts({room.given.data(), nullptr, nullptr, 0}, routing, shape.per_token, rows, shape.hidden,
                      true, x.data(), nullptr);
        }));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int32_t> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {8192, 1024, 64};
  try {
    for (const Shape& shape : kShapes)
      for (const int32_t rows : sizes) time_shape(shape, rows);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}

// What the experts of a layer take on the device, step by step, in bf16 and in FP8: our grouped products
// beside CUTLASS's.
//   cmake --build build/release --target bench_experts
//   build/release/bench/bench_experts [qwen3|olmoe|mixtral|gpt-oss] [rows...]
// Rows choose experts at random; L2 is flushed before every run; median of 15 runs. TFLOP/s are of useful
// rows. "of 1" is the share of the limit, which is 700 TFLOP/s (1,400 in FP8) or all weights read once at 4.2
// TB/s, whichever takes longer.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "bench/grouped_cutlass.h"
#include "core/base/error.h"
#include "cuda/expert_room.h"
#include "cuda/gemm/gemm.h"
#include "cuda/gemm/grouped_hopper.h"
#include "cuda/ops/ops.h"
#include "cuda/weights/device_weights.h"

namespace {

using namespace sheaf;
using namespace sheaf::cuda;

struct Shape {
  const char *word, *name;
  int32_t hidden, count, per_token, ffn;
};
constexpr Shape kShapes[] = {{"qwen3", "Qwen3-30B-A3B", 2048, 128, 8, 768},
                             {"olmoe", "OLMoE 1B-7B", 2048, 64, 8, 1024},
                             {"mixtral", "Mixtral 8x7B", 4096, 8, 2, 14336},
                             {"gpt-oss", "gpt-oss-20b", 2880, 32, 4, 2880}};

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

/// A stage in both kinds of numbers; seconds are 0 where one does not have it.
struct Line {
  const char* name;
  double flops, weights;  ///< of useful rows; values of weights that are read
  double bf16, fp8;       ///< seconds
};

// What an H200 reaches in dense products, and reads a second (docs/performance.md).
constexpr double kBf16Rate = 700e12, kFp8Rate = 1400e12, kRead = 4.2e12;

void print_kind(double taken, const Line& line, double rate, double value_bytes) {
  if (taken == 0) return static_cast<void>(std::printf("          |         |      |"));
  std::printf(" %8.1f |", taken * 1e6);
  if (line.flops == 0) return static_cast<void>(std::printf("         |      |"));
  const double limit = std::max(line.flops / rate, line.weights * value_bytes / kRead);
  std::printf(" %7.0f | %4.2f |", line.flops / taken / 1e12, limit / taken);
}

void print(const Line& line) {
  std::printf("| %-20s |", line.name);
  print_kind(line.bf16, line, kBf16Rate, 2);
  print_kind(line.fp8, line, kFp8Rate, 1);
  if (line.bf16 > 0 && line.fp8 > 0)
    std::printf(" %5.2f |\n", line.bf16 / line.fp8);
  else
    std::printf("       |\n");
}

/// The experts of a layer in one kind of numbers.
struct Weights {
  Weights(const Shape& shape, bool fp8) {
    const int64_t all = int64_t{shape.count} * shape.hidden * shape.ffn;
    fill(gate_up, 2 * all / shape.hidden, shape.hidden, fp8);
    fill(down, all / shape.ffn, shape.ffn, fp8);
  }
  static void fill(DeviceMatrix& matrix, int64_t rows, int64_t cols, bool fp8) {
    matrix.wide = random_values(rows * cols, 0.02f);
    if (!fp8) return;
    matrix.narrow.grow(rows * cols);
    matrix.scales.grow(rows);
    round_weights(matrix.wide.data(), rows, cols, matrix.narrow.data(), matrix.scales.data(), nullptr);
    check(cudaDeviceSynchronize(), "weights");
    matrix.wide = {};
  }
  DeviceMatrix gate_up, down;
};

/// What both kinds share: the shape, the routes, the rows.
struct Layer {
  const Shape& shape;
  int32_t rows;
  const ExpertRoom& room;
  int64_t hidden = shape.hidden, ffn = shape.ffn;
  int32_t gathered = rows * shape.per_token;
  Routes routes = room.routes(0);

  template <class In>
  Grouped<In> from(const In& in, const int32_t* sources) const {
    return {in, sources, routes.offsets, shape.count};
  }
};

/// Seconds of every stage; 0 where it is not there.
struct Stages {
  double any_gate_up = 0, any_down = 0;  ///< by our kernel for all GPUs
  double copy = 0;
  double cutlass_gate_up = 0, gates = 0, cutlass_down = 0;
  double ampere_gate_up = 0, ampere_down = 0;  ///< by CUTLASS for Ampere and Ada
  double hopper_gate_up = 0, hopper_down = 0;  ///< by our kernel for Hopper, gates applied

  double any() const { return any_gate_up + any_down; }
  double cutlass() const { return copy + cutlass_gate_up + gates + cutlass_down; }
  double ampere() const { return copy + ampere_gate_up + gates + ampere_down; }
  double hopper() const { return copy + hopper_gate_up + hopper_down; }
};

Stages time_bf16(const Layer& layer) {
  const auto& [shape, rows, room, hidden, ffn, gathered, routes] = layer;
  const Weights weights(shape, false);
  const auto in = random_values(rows * hidden, 1);
  const bf16 *const normed = in.data(), *const gated = room.gated.data(), *const copied = room.given.data();
  const bf16 *const gate_up = weights.gate_up.wide.data(), *const down = weights.down.wide.data();
  Stages stages{};
  stages.any_gate_up = seconds([&] {
    multiply_grouped_gated(Activation::silu, layer.from(normed, routes.sources), gate_up, ffn, hidden,
                           room.gated.data(), nullptr);
  });
  stages.any_down = seconds(
      [&] { multiply_grouped(layer.from(gated, nullptr), down, hidden, ffn, room.given.data(), nullptr); });
  stages.copy =
      seconds([&] { copy_rows(normed, routes.sources, gathered, shape.hidden, room.given.data(), nullptr); });
  if (grouped_hopper_products(hidden, ffn)) {
    stages.hopper_gate_up = seconds([&] {
      multiply_grouped_gated_hopper(Activation::silu, layer.from(copied, nullptr), gathered, gate_up, ffn,
                                    hidden, room.gated.data(), nullptr);
    });
    stages.hopper_down = seconds([&] {
      multiply_grouped_hopper(layer.from(gated, nullptr), gathered, down, hidden, ffn, room.given.data(),
                              nullptr);
    });
  }
  const DeviceMemory<bf16> both(2 * gathered * ffn);
  if (const DeviceMemory<std::byte> work(ampere_grouped_bytes(shape.count)); work.size() > 0) {
    stages.ampere_gate_up = seconds([&] {
      multiply_grouped_ampere(layer.from(copied, nullptr), gate_up, 2 * ffn, hidden, work.data(), both.data(),
                              nullptr);
    });
    stages.ampere_down = seconds([&] {
      multiply_grouped_ampere(layer.from(gated, nullptr), down, hidden, ffn, work.data(), room.given.data(),
                              nullptr);
    });
  }
  stages.gates = seconds(
      [&] { apply_gates(Activation::silu, both.data(), gathered, shape.ffn, room.gated.data(), nullptr); });
  const DeviceMemory<std::byte> work(cutlass_grouped_bytes(shape.count));
  if (work.size() == 0) return stages;
  stages.cutlass_gate_up = seconds([&] {
    multiply_grouped_cutlass(layer.from(copied, nullptr), gate_up, 2 * ffn, hidden, work.data(), both.data(),
                             nullptr);
  });
  stages.cutlass_down = seconds([&] {
    multiply_grouped_cutlass(layer.from(gated, nullptr), down, hidden, ffn, work.data(), room.given.data(),
                             nullptr);
  });
  return stages;
}

Stages time_fp8(const Layer& layer) {
  const auto& [shape, rows, room, hidden, ffn, gathered, routes] = layer;
  const Weights weights(shape, true);
  Fp8Memory in;
  in.grow(rows, hidden);
  round_rows(random_values(rows * hidden, 1).data(), rows, shape.hidden, in.rows(), nullptr);
  check(cudaDeviceSynchronize(), "rows");
  const Fp8Rows normed = in.rows(), gated = room.gated8.rows(), copied = room.copied8();
  const Fp8Weight gate_up = weights.gate_up.fp8(), down = weights.down.fp8();
  Stages stages{};
  stages.any_gate_up = seconds([&] {
    multiply_grouped_gated(Activation::silu, layer.from(normed, routes.sources), gate_up, ffn, hidden, gated,
                           nullptr);
    align_rows(gated, gathered, shape.ffn, nullptr);
  });
  stages.any_down = seconds(
      [&] { multiply_grouped(layer.from(gated, nullptr), down, hidden, ffn, room.given.data(), nullptr); });
  stages.copy = seconds([&] { copy_rows(normed, routes.sources, gathered, shape.hidden, copied, nullptr); });
  if (grouped_hopper_products(hidden, ffn)) {
    stages.hopper_gate_up = seconds([&] {
      multiply_grouped_gated_hopper(Activation::silu, layer.from(copied, nullptr), gathered, gate_up, ffn,
                                    hidden, gated, nullptr);
      align_rows(gated, gathered, shape.ffn, nullptr);
    });
    stages.hopper_down = seconds([&] {
      multiply_grouped_hopper(layer.from(gated, nullptr), gathered, down, hidden, ffn, room.given.data(),
                              nullptr);
    });
  }
  const DeviceMemory<std::byte> work(cutlass_grouped_fp8_bytes(shape.count));
  if (work.size() == 0) return stages;
  const DeviceMemory<bf16> both(2 * gathered * ffn);
  stages.cutlass_gate_up = seconds([&] {
    multiply_grouped_cutlass(layer.from(copied, nullptr), gate_up, 2 * ffn, hidden, work.data(), both.data(),
                             nullptr);
  });
  stages.gates =
      seconds([&] { gates_to_fp8(Activation::silu, both.data(), gathered, shape.ffn, gated, nullptr); });
  stages.cutlass_down = seconds([&] {
    multiply_grouped_cutlass(layer.from(gated, nullptr), down, hidden, ffn, work.data(), room.given.data(),
                             nullptr);
  });
  return stages;
}

/// Room for the rows of a step, with logits that spread them over the experts at random.
ExpertRoom make_room(const Shape& shape, int32_t rows, bool fp8) {
  ModelConfig config;
  config.hidden = shape.hidden;
  config.experts.count = shape.count;
  config.experts.per_token = shape.per_token;
  config.experts.ffn = shape.ffn;
  ExpertRoom room;
  config.layers.resize(1);
  room.grow(rows, config, fp8, !fp8);
  std::vector<float> logits(static_cast<size_t>(room.logits.size()));
  std::mt19937 random(1);
  for (float& logit : logits) logit = std::normal_distribution<float>()(random);
  check(cudaMemcpy(room.logits.data(), logits.data(), logits.size() * 4, cudaMemcpyHostToDevice), "logits");
  route(config.experts, {room.logits.data(), router_rows(config.experts), nullptr}, rows, room.routes(0),
        nullptr);
  gather_choices(config.experts, rows, room.routes(0), nullptr);
  check(cudaDeviceSynchronize(), "routes");
  return room;
}

void time_shape(const Shape& shape, int32_t rows, bool with_fp8) {
  Experts experts;
  experts.count = shape.count;
  experts.per_token = shape.per_token;
  Stages wide{}, narrow{};
  double choosing = 0, gathering = 0, adding = 0;
  {
    const ExpertRoom room = make_room(shape, rows, false);
    const Routes routes = room.routes(0);
    choosing = seconds([&] {
      route(experts, {room.logits.data(), router_rows(experts), nullptr}, rows, routes, nullptr);
    });
    gathering = seconds([&] { gather_choices(experts, rows, routes, nullptr); });
    wide = time_bf16({shape, rows, room});
    const DeviceMemory<float> x(int64_t{rows} * shape.hidden);
    adding = seconds([&] {
      sum_experts({room.given.data(), nullptr, nullptr, 0}, routes, shape.per_token, rows, shape.hidden, true,
                  x.data(), nullptr);
    });
  }
  if (with_fp8) {
    const ExpertRoom room = make_room(shape, rows, true);
    narrow = time_fp8({shape, rows, room});
  }
  const double weights = static_cast<double>(shape.count) * shape.hidden * shape.ffn;
  const double flops = 2.0 * rows * shape.per_token * static_cast<double>(shape.hidden) * shape.ffn;
  std::printf("\n%s, %d rows\n| %-20s | bf16, us | TFLOP/s | of 1 | FP8, us  | TFLOP/s | of 1 | ratio |\n",
              shape.name, rows, "");
  print({"choose", 0, 0, choosing, with_fp8 ? choosing : 0});
  print({"gather", 0, 0, gathering, with_fp8 ? gathering : 0});
  const auto line = [&](const char* name, double share, double Stages::*stage) {
    print({name, share * flops, share * weights, wide.*stage, narrow.*stage});
  };
  line("gate and up, any GPU", 2, &Stages::any_gate_up);
  line("down, any GPU", 1, &Stages::any_down);
  line("copy rows", 0, &Stages::copy);
  line("gate and up, CUTLASS", 2, &Stages::cutlass_gate_up);
  line("gates", 0, &Stages::gates);
  line("down, CUTLASS", 1, &Stages::cutlass_down);
  line("gate and up, Ampere", 2, &Stages::ampere_gate_up);
  line("down, Ampere", 1, &Stages::ampere_down);
  line("gated, Hopper", 2, &Stages::hopper_gate_up);
  line("down, Hopper", 1, &Stages::hopper_down);
  const double around = choosing + gathering + adding;
  print({"add up", 0, 0, adding, with_fp8 ? adding : 0});
  const auto layer = [&](const char* name, double (Stages::*sum)() const, bool there) {
    if (there)
      print({name, 3 * flops, 3 * weights, around + (wide.*sum)(), with_fp8 ? around + (narrow.*sum)() : 0});
  };
  layer("layer, any GPU", &Stages::any, true);
  layer("layer, CUTLASS", &Stages::cutlass, wide.cutlass_down > 0);
  if (wide.ampere_down > 0) print({"layer, Ampere", 3 * flops, 3 * weights, around + wide.ampere(), 0});
  layer("layer, Hopper", &Stages::hopper, wide.hopper_down > 0);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int32_t> sizes;
  std::string_view only;
  for (int i = 1; i < argc; ++i) {
    const bool named = std::ranges::any_of(
        kShapes, [&](const Shape& shape) { return argv[i] == std::string_view(shape.word); });
    if (named)
      only = argv[i];
    else if (std::atoi(argv[i]) > 0)
      sizes.push_back(std::atoi(argv[i]));
    else
      return std::fprintf(stderr, "%s: name qwen3, olmoe, mixtral, gpt-oss or a number of rows\n", argv[i]),
             2;
  }
  if (sizes.empty()) sizes = {8192, 4096, 2048, 1024};
  try {
    const bool with_fp8 = ada_fp8_products();
    for (const Shape& shape : kShapes)
      for (const int32_t rows : sizes)
        if (only.empty() || only == shape.word) time_shape(shape, rows, with_fp8);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}

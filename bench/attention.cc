// Span attention alone, as the CUDA backend runs it: one layer, random values, median of 20 runs.
//   cmake --build build/release --target bench_attention && build/release/bench/bench_attention --help
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "cuda/attention/attention_plan.h"
#include "cuda/base/device_memory.h"
#include "cuda/ops/ops.h"

namespace {

using namespace sheaf;
using namespace sheaf::cuda;

constexpr int32_t kPage = 16;
constexpr double kFlops = 600e12, kBytes = 4.2e12;

constexpr const char* kHelp =
    R"(bench_attention [HEADS KV_HEADS HEAD_DIM [fp8] [capped]]    (default: 32 8 128)

Times span attention of one layer on the first CUDA device, with random values: medians of 20 runs.

prefill   causal prompts of 512 to 16,384 tokens, at least 8,192 tokens in all
tree      contexts behind one prefix, and questions or answers behind each context
prefix    decoding over a shared prefix, as in Hydragen: `batch` rows behind one prefix, each with 64 keys of
          its own; "apart" gives every row a span of its own over the same pages, so that nothing is shared
window    rows over 32,000 keys of which a sliding window shows 1,024, beside the same rows over 1,024 keys
          without a window: the last rows of a prompt, and answers behind one

The limit is 600 TFLOP/s or 4.2 TB/s, whichever binds; with fp8 it stays that of fp16, to compare. With capped, scores
have a soft cap of 50, as in Gemma 2.

Heads of 256: bench_attention 16 8 256 (Gemma 3 12B), bench_attention 16 8 256 capped (Gemma 2 9B).
)";

template <class T>
DeviceMemory<T> send(const std::vector<T>& values) {
  DeviceMemory<T> device(std::max<int64_t>(1, static_cast<int64_t>(values.size())));
  check(cudaMemcpy(device.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "send");
  return device;
}

struct Batch {
  StepBatch step;
  int32_t pages = 0;
  int32_t add_span(int32_t keys, int32_t position = 0) {
    const int32_t span = add_span_over(pages, keys, position);
    pages += (keys + kPage - 1) / kPage;
    return span;
  }
  /// Over pages that are there already.
  int32_t add_span_over(int32_t first, int32_t keys, int32_t position = 0) {
    step.spans.push_back({static_cast<int32_t>(step.pages.size()), keys, position});
    for (int32_t key = 0; key < keys; key += kPage) step.pages.push_back(first++);
    return static_cast<int32_t>(step.spans.size()) - 1;
  }
  void look(int32_t span, int32_t row, int32_t count, int32_t visible, int32_t more) {
    step.tiles.push_back({span, static_cast<int32_t>(step.tile_rows.size()), count});
    for (int32_t i = 0; i < count; ++i) step.tile_rows.push_back({row + i, visible + more * i});
  }
};

class Bench {
 public:
  Bench(HeadLayout layout, bool fp8) : layout_(layout), fp8_(fp8) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, 0), "device");
    multiprocessors_ = properties.multiProcessorCount;
    check(cudaEventCreate(&start_), "event");
    check(cudaEventCreate(&stop_), "event");
  }

  /// Seconds of one layer's attention. `window`: of the layer, 0: it has none.
  double seconds(const Batch& batch, int32_t window = 0) {
    HeadLayout layout = layout_;
    layout.slots = int64_t{batch.pages} * kPage;
    const AttentionPlanner planner = make_attention_planner(
        {layout.heads / layout.kv_heads, kPage, 4 * multiprocessors_ / layout.kv_heads});
    AttentionPlan plan;
    planner(batch.step, window, plan);
    const auto items = send(plan.items);
    const auto rows = send(plan.rows);
    const auto pages = send(plan.pages);
    const auto merged = send(plan.merged_rows);
    const auto begin = send(plan.partial_begin);
    const auto partials = send(plan.partials);
    const auto page_positions = send(plan.page_positions);
    const auto row_positions = send(batch.step.positions);
    AttentionInputs in{items.data(),
                       plan.small_items,
                       static_cast<int32_t>(plan.items.size()) - plan.small_items,
                       rows.data(),
                       pages.data(),
                       kPage,
                       merged.data(),
                       begin.data(),
                       partials.data(),
                       static_cast<int32_t>(plan.merged_rows.size()),
                       plan.partial_rows};
    in.window = plan.window;
    in.page_positions = page_positions.data();
    in.row_positions = row_positions.data();
    const auto on_device = send(std::vector{in});
    const int64_t row_values = int64_t{layout.heads} * layout.padded_dim;
    const auto q = random(batch.step.rows() * row_values),
               k = random(layout.kv_heads * layout.slots * layout.padded_dim),
               v = random(layout.kv_heads * layout.slots * layout.padded_dim);
    const DeviceMemory<bf16> out(batch.step.rows() * row_values);
    const DeviceMemory<float> partial_out(plan.partial_rows * row_values + 1),
        partial_lse(int64_t{plan.partial_rows} * layout.heads + 1);
    AttentionTensors tensors{q.data(),           k.data(),   v.data(), partial_out.data(),
                             partial_lse.data(), out.data(), {}};
    const auto scales =
        send(std::vector<float>(static_cast<size_t>(layout.heads + 2 * layout.kv_heads), 1.0f / 8));
    DeviceMemory<e4m3> q8, k8, v8;
    if (fp8_) {
      q8.grow(q.size());
      k8.grow(k.size());
      v8.grow(v.size());
      // One head of very many numbers has the layout of all of them; values may lie as they will.
      HeadLayout one = layout;
      one.heads = 1;
      for (const auto& [from, to] : {std::pair{&q, &q8}, {&k, &k8}, {&v, &v8}})
        round_queries(from->data(), static_cast<int32_t>(from->size() / layout.padded_dim), one,
                      scales.data(), to->data(), nullptr);
      check(cudaDeviceSynchronize(), "rounding");
      tensors.q8 = q8.data();
      tensors.narrow = {k8.data(), v8.data(), scales.data()};
    }
    // Replayed as a graph, so that launching does not count.
    cudaStream_t stream{};
    cudaGraph_t graph{};
    cudaGraphExec_t replay{};
    check(cudaStreamCreate(&stream), "stream");
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    attend(in, on_device.data(), layout, tensors, stream);
    check(cudaStreamEndCapture(stream, &graph), "capture");
    check(cudaGraphInstantiate(&replay, graph, 0), "graph");
    std::vector<float> times;
    for (int run = 0; run < 23; ++run) {
      check(cudaEventRecord(start_, stream), "event");
      check(cudaGraphLaunch(replay, stream), "graph");
      check(cudaEventRecord(stop_, stream), "event");
      check(cudaEventSynchronize(stop_), "attention");
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, start_, stop_), "event");
      if (run >= 3) times.push_back(milliseconds);
    }
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    check(cudaGetLastError(), "attention");
    std::nth_element(times.begin(), times.begin() + 10, times.end());
    return times[10] / 1000.0;
  }

  void prefill(int32_t length) {
    Batch batch;
    const int32_t prompts = std::max(1, 8192 / length);
    for (int32_t prompt = 0; prompt < prompts; ++prompt) {
      batch.step.tokens.resize(batch.step.tokens.size() + static_cast<size_t>(length));
      batch.look(batch.add_span(length), prompt * length, length, 1, 1);
    }
    const double flops = 4.0 * prompts * length * (length + 1) / 2 * layout_.heads * layout_.head_dim;
    const double time = seconds(batch);
    std::printf("| prefill %5d x %2d | %8.1f us | %5.0f TFLOP/s | %.2f |\n", length, prompts, time * 1e6,
                flops / time / 1e12, flops / kFlops / time);
  }

  /// Contexts behind one prefix, and questions of `question` rows behind each context; `computed`: of what.
  void tree(const char* computed, int32_t prefix, int32_t contexts, int32_t context, int32_t questions,
            int32_t question) {
    Batch batch;
    double keys = 0;
    auto add_rows = [&](int32_t count) {
      const int32_t row = batch.step.rows();
      batch.step.tokens.resize(batch.step.tokens.size() + static_cast<size_t>(count));
      return row;
    };
    // Rows are laid out first, so that the prefix has one tile for all of them.
    const bool of_contexts = questions == 0;
    const int32_t each = of_contexts ? context : questions * question;
    add_rows(contexts * each);
    batch.look(batch.add_span(prefix), 0, contexts * each, prefix, 0);
    for (int32_t c = 0; c < contexts; ++c) {
      const int32_t span = batch.add_span(context);
      if (of_contexts) {
        batch.look(span, c * each, each, 1, 1);
        keys += static_cast<double>(each) * (prefix + (context + 1) / 2.0);
        continue;
      }
      batch.look(span, c * each, each, context, 0);
      for (int32_t q = 0; q < questions; ++q)
        batch.look(batch.add_span(question), c * each + q * question, question, 1, 1);
      keys += static_cast<double>(each) * (prefix + context + (question + 1) / 2.0);
    }
    const double flops = 4.0 * keys * layout_.heads * layout_.head_dim;
    const double time = seconds(batch);
    std::printf(
        "| %s: prefix %d, %d contexts of %d, %d questions of %d | %8.1f us | %5.0f TFLOP/s | %.2f |\n",
        computed, prefix, contexts, context, questions, question, time * 1e6, flops / time / 1e12,
        flops / kFlops / time);
  }

  void decode(int32_t prefix, int32_t count, int32_t own) {
    Batch shared, apart;
    shared.step.tokens.resize(static_cast<size_t>(count));
    shared.look(shared.add_span(prefix), 0, count, prefix, 0);
    apart.step.tokens.resize(static_cast<size_t>(count));
    apart.pages = prefix / kPage;
    for (int32_t row = 0; row < count; ++row) {
      shared.look(shared.add_span(own), row, 1, own, 0);
      apart.look(apart.add_span_over(0, prefix), row, 1, prefix, 0);
      apart.look(apart.add_span(own), row, 1, own, 0);
    }
    const double flops = 4.0 * count * (prefix + own) * layout_.heads * layout_.head_dim;
    const double bytes =
        4.0 * (prefix + static_cast<double>(count) * own) * layout_.kv_heads * layout_.head_dim +
        4.0 * count * layout_.heads * layout_.head_dim;
    const double limit = std::max(flops / kFlops, bytes / kBytes);
    const double together = seconds(shared), alone = seconds(apart);
    std::printf("| prefix %5d, batch %4d | %8.1f us | %5.0f TFLOP/s | %.2f | apart %8.1f us, %.1f x |\n",
                prefix, count, together * 1e6, flops / together / 1e12, limit / together, alone * 1e6,
                alone / together);
  }

  /// The last `count` rows of a prompt of 32,000 tokens, or as many answers behind it: each sees 1,024 keys.
  void window(int32_t count, bool answers) {
    constexpr int32_t keys = 32000, seen = 1024;
    Batch windowed, plain;
    for (Batch* batch : {&windowed, &plain}) {
      batch->step.tokens.resize(static_cast<size_t>(count));
      for (int32_t row = 0; row < count; ++row)
        batch->step.positions.push_back(answers ? keys - 1 : keys - count + row);
    }
    windowed.look(windowed.add_span(keys), 0, count, answers ? keys : keys - count + 1, answers ? 0 : 1);
    plain.look(plain.add_span(seen), 0, count, seen, 0);
    const double flops = 4.0 * count * seen * layout_.heads * layout_.head_dim;
    const double read = answers ? seen : seen + count - 1;  // keys
    const double bytes =
        4.0 * (read * layout_.kv_heads + static_cast<double>(count) * layout_.heads) * layout_.head_dim;
    const double time = seconds(windowed, seen), without = seconds(plain);
    std::printf(
        "| window %d of %d keys, %4d %s | %8.1f us | %5.0f TFLOP/s | %.2f | %d keys without a window %8.1f "
        "us, "
        "%.2f x |\n",
        seen, keys, count, answers ? "answers" : "rows of a prompt", time * 1e6, flops / time / 1e12,
        std::max(flops / kFlops, bytes / kBytes) / time, seen, without * 1e6, time / without);
  }

 private:
  /// bf16 bits of normal numbers of spread 2 read as fp16 are numbers of spread 1.4 with short tails: random
  /// enough.
  DeviceMemory<f16> random(int64_t count) {
    DeviceMemory<f16> memory(count);
    fill_random(reinterpret_cast<bf16*>(memory.data()), count, 2.0f, seed_++, nullptr);
    return memory;
  }
  HeadLayout layout_;
  bool fp8_;
  int32_t multiprocessors_ = 0;
  uint64_t seed_ = 1;
  cudaEvent_t start_{}, stop_{};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]).starts_with("-")) {
    std::fputs(kHelp, stdout);
    return std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h" ? 0 : 2;
  }
  HeadLayout layout{};
  layout.heads = argc > 1 ? std::atoi(argv[1]) : 32;
  layout.kv_heads = argc > 2 ? std::atoi(argv[2]) : 8;
  layout.head_dim = layout.padded_dim = argc > 3 ? std::atoi(argv[3]) : 128;
  bool fp8 = false;
  for (int i = 4; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "fp8") fp8 = true;
    if (word == "capped") layout.score_cap = static_cast<float>(50 * 1.4426950408889634);
    if (word != "fp8" && word != "capped") {
      std::fputs(kHelp, stdout);
      return 2;
    }
  }
  std::printf("%d heads, %d for keys and values, of %d%s%s\n", layout.heads, layout.kv_heads, layout.head_dim,
              fp8 ? ", in FP8" : "", layout.score_cap > 0 ? ", capped" : "");
  Bench bench(layout, fp8);
  for (int32_t length : {512, 2048, 8192, 16384}) bench.prefill(length);
  bench.tree("contexts", 2754, 11, 737, 0, 0);
  bench.tree("questions", 2754, 11, 737, 30, 12);
  bench.tree("answers", 2754, 11, 737, 30, 1);
  bench.tree("answers", 2754, 11, 737, 15, 1);
  bench.tree("contexts", 48, 40, 178, 0, 0);
  bench.tree("questions", 48, 40, 178, 9, 13);
  bench.tree("answers", 48, 400, 178, 9, 1);
  bench.tree("contexts", 48, 20, 400, 0, 0);
  for (int32_t prefix : {1024, 4096, 16384})
    for (int32_t count : {16, 64, 256, 1024}) bench.decode(prefix, count, 64);
  for (const bool answers : {false, true})
    for (int32_t count : {16, 256, 2048}) bench.window(count, answers);
}

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "core/engine/engine.h"
#include "core/error.h"
#include "core/methods/builder.h"
#include "core/model/shapes.h"
#include "core/stopwatch.h"
#include "io/workload.h"

#ifdef SHEAF_WITH_CUDA
#include "cuda/cuda_backend.h"
#endif

namespace sheaf {
namespace {

struct BenchOptions {
  std::string workload, shape = "qwen3-8b", method = "ippd";
  int32_t device = 0, documents = 0, rows = 0;
  int32_t prompt_tokens = 32768;
};

#ifdef SHEAF_WITH_CUDA
/// The least work for the workload's answers: every distinct token computed once.
struct Floor {
  int64_t tokens = 0, keys = 0, picks = 0;  ///< rows, keys seen by them, rows of the output projection

  /// Keys seen by `count` tokens that follow `before` visible ones.
  void add(int64_t before, int64_t count) {
    tokens += count;
    keys += count * before + count * (count + 1) / 2;
  }
  double gemm_flops(const ModelConfig& config) const {
    return 2.0 * static_cast<double>(tokens) * static_cast<double>(layer_weights(config)) +
           2.0 * static_cast<double>(picks) * config.hidden * config.vocab;
  }
  double attention_flops(const ModelConfig& config) const {
    return 4.0 * static_cast<double>(keys) * config.layers * config.heads * config.head_dim;
  }
};

constexpr double kGemmRate = 700e12, kAttentionRate = 600e12;  // an H200 in bf16, measured

Floor count_floor(const Workload& workload) {
  Floor floor;
  for (size_t b = 0; b < workload.bins.size(); ++b) {
    const auto& bin = workload.bins[b];
    const auto head = static_cast<int64_t>(bin.front().bin->instruction.size());
    floor.add(0, head);
    for (const ItemParts& item : bin) {
      const auto document = static_cast<int64_t>(item.document.size());
      floor.add(head, document);
      for (const QuestionParts& question : item.own_questions) {
        floor.add(head + document, static_cast<int64_t>(question.tokens.size()) + question.max_tokens - 1);
        floor.picks += question.max_tokens;
      }
    }
  }
  return floor;
}

/// Stacks of at most `documents` items and `prompt_tokens` tokens.
std::vector<Stack> build_stacks(const Workload& workload, const BenchOptions& options) {
  Job::Method method;
  method.name = options.method;
  method.documents = options.documents;
  const Builder builder = make_builder(method);
  std::vector<Stack> stacks;
  for (const auto& bin : workload.bins) {
    size_t start = 0;
    while (start < bin.size()) {
      size_t end = start;
      int64_t tokens = 0;
      while (end < bin.size() &&
             (builder.documents == 0 || end - start < static_cast<size_t>(builder.documents))) {
        tokens += static_cast<int64_t>(bin[end].document.size());
        for (const QuestionParts& question : bin[end].own_questions)
          tokens += static_cast<int64_t>(question.tokens.size()) + question.max_tokens;
        if (end > start && tokens > options.prompt_tokens) break;
        ++end;
      }
      builder.build(std::span(bin).subspan(start, end - start), stacks);
      start = end;
    }
  }
  return stacks;
}

void bench(const BenchOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const bool slots = options.method == "hpd";
  const Workload workload = read_workload(options.workload, slots);
  const ModelConfig config = shape_by_name(options.shape);
  if (workload.vocab > config.vocab)
    refuse("{}: ids up to {}, the shape has {}", options.workload, workload.vocab - 1, config.vocab);
  std::vector<Stack> stacks = build_stacks(workload, options);

  const auto backend = make_random_cuda_backend(config, options.device, 7);
  EngineOptions engine_options;
  engine_options.rows_per_step = options.rows > 0 ? options.rows : backend->preferred_rows();
  // A tenth of what is free stays for activations.
  const int64_t kv_bytes = cuda_free_bytes(options.device) * 8 / 10;
  engine_options.pages = static_cast<int32_t>(
      std::min<int64_t>(kv_bytes / (backend->kv_bytes_per_token() * engine_options.page_size), 1 << 26));
  const StopRules rules(config.vocab, {});
  Engine engine(*backend, rules, engine_options);
  const double start_up = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  size_t next = 0;
  double work = 0;
  {
    const Stopwatch watch(work);
    engine.run(
        [&]() -> std::optional<Stack> {
          if (next == stacks.size()) return std::nullopt;
          return std::move(stacks[next++]);
        },
        [](Stack&&, std::vector<Answer>&&) {});
  }
  const EngineStats& stats = engine.stats();
  const Floor floor = count_floor(workload);
  const double limit = floor.gemm_flops(config) / kGemmRate + floor.attention_flops(config) / kAttentionRate;
  const auto items = static_cast<double>(workload.questions);
  const nlohmann::ordered_json result{
      {"workload", workload.name},
      {"shape", options.shape},
      {"method", options.method},
      {"backend", backend->describe()},
      {"items", workload.questions},
      {"items_per_second", items / work},
      {"limit_per_second", items / limit},
      {"share_of_limit", limit / work},
      {"tokens", stats.rows()},
      {"tokens_floor", floor.tokens},
      {"steps", stats.steps},
      {"tera_flops", (floor.gemm_flops(config) + floor.attention_flops(config)) / 1e12},
      {"seconds",
       {{"start_up", start_up},
        {"work", work},
        {"steps", stats.step_seconds},
        {"host", work - stats.step_seconds}}},
      {"kv_peak_gb", static_cast<double>(stats.peak_pages) * engine_options.page_size *
                         static_cast<double>(backend->kv_bytes_per_token()) / 1e9}};
  std::cout << result.dump() << std::endl;
}
#endif

}  // namespace

void add_bench_command(CLI::App& app) {
  auto* command =
      app.add_subcommand("bench", "Time a token-level workload on a CUDA device with random weights");
  auto options = std::make_shared<BenchOptions>();
  command->add_option("WORKLOAD", options->workload, "JSON lines of token ids")->required();
  command->add_option("--shape", options->shape, "The model's shape")
      ->check(CLI::IsMember(shape_names()))
      ->capture_default_str();
  command->add_option("--method", options->method, "standard, prefix, ippd, or hpd (the workload's slots)")
      ->check(CLI::IsMember({"standard", "prefix", "ippd", "hpd"}))
      ->capture_default_str();
  command->add_option("--documents", options->documents,
                      "Contexts or documents per prompt (0: as many as fit)");
  command->add_option("--prompt-tokens", options->prompt_tokens, "Most tokens of a prompt")
      ->capture_default_str();
  command->add_option("--rows", options->rows, "Rows per step (0: as the device prefers)");
  command->add_option("--device", options->device, "Which CUDA device");
  command->callback([options] {
#ifdef SHEAF_WITH_CUDA
    bench(*options);
#else
    refuse("bench needs a CUDA device, and this program was built without CUDA");
#endif
  });
}

}  // namespace sheaf

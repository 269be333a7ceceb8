#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/checks.h"
#include "app/commands.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/stopwatch.h"
#include "core/engine/engine.h"
#include "core/methods/method.h"
#include "core/model/shapes.h"
#include "core/segments/work_count.h"
#include "io/base/named_output.h"
#include "io/base/process_time.h"
#include "io/files/calibration_file.h"
#include "io/files/workload.h"
#include "io/jobs/bench_backend.h"
#include "io/jobs/bench_calibrate.h"
#include "io/jobs/bench_run.h"
#include "io/jobs/bench_stacks.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

struct BenchOptions {
  std::string workload;
  std::string device = "cuda";
  BenchModel model{"qwen3-8b", ""};
  bool random_weights = false;  ///< said aloud: without a model path it is so anyhow
  BenchPacking packing;
  int32_t tokens = 0;  ///< per step; 0: as the backend prefers
  int32_t repeat = 1;  ///< runs; the first of several only warms up

  std::string calibration;          ///< a file to write; then there is no workload
  std::vector<std::string> shapes;  ///< to calibrate with
};

ordered_json in_tera(const Work& work, const ModelConfig& config) {
  const double gemm = gemm_flops(work, config), attention = attention_flops(work, config);
  return {{"total", (gemm + attention) / 1e12}, {"gemm", gemm / 1e12}, {"attention", attention / 1e12}};
}

/// Everything laid out for timing a workload.
class Bench {
 public:
  explicit Bench(const BenchOptions& options)
      : options_(options), workload_(read(options, reading_seconds_)), made_(options.model) {
    const ModelConfig& config = made_.config();
    if (workload_.vocab > config.vocab)
      refuse("{}: the workload has token ids up to {}, but the model has only {} tokens", options_.workload,
             workload_.vocab - 1, config.vocab);
    stacks_ = pack(workload_, options_.packing, config.context);
    Backend& backend = made_.backend();
    engine_.tokens_per_step = options_.tokens > 0 ? options_.tokens : backend.preferred_tokens();
    page_bytes_ = backend.kv_bytes_per_token() * engine_.page_size;
    const int64_t pages = std::min(made_.kv_room() / page_bytes_, most_pages(stacks_, engine_.page_size));
    engine_.pages = static_cast<int32_t>(std::clamp<int64_t>(pages, 1, INT32_MAX / engine_.page_size));
    ready_seconds_ = process_seconds();
  }

  void run() {
    for (int32_t i = 0; i < options_.repeat; ++i)
      runs_.push_back(run_once(made_.backend(), engine_, stacks_));
    sorted_.assign(runs_.begin() + (runs_.size() > 1 ? 1 : 0), runs_.end());
    std::ranges::sort(sorted_, {}, &BenchRun::seconds);
  }

  ordered_json report() {
    const BenchRun& median = sorted_[sorted_.size() / 2];
    const EngineStats& stats = median.stats;
    const ModelConfig& config = made_.config();
    const Work least = least_work(workload_);
    if (stats.answer_tokens != least.picks)
      fail("{} answer tokens were decoded, but {} were expected", stats.answer_tokens, least.picks);
    const Work done = work_done(stats);
    const double flops = gemm_flops(done, config) + attention_flops(done, config);
    const double limit = least_seconds(least, config);
    const auto items = static_cast<double>(workload_.questions);
    const std::string& model = options_.model.path;
    return {{"workload", workload_.name},
            {"shape", model.empty() ? options_.model.shape : model},
            {"weights", model.empty() ? "random" : "loaded"},
            {"method", options_.packing.method},
            {"backend", made_.backend().describe()},
            {"items", workload_.questions},
            {"items_per_second", items / median.seconds},
            {"items_per_second_best", items / sorted_.front().seconds},
            {"limit_per_second", items / limit},
            {"share_of_limit", limit / median.seconds},
            {"tera_flops", {{"done", in_tera(done, config)}, {"floor", in_tera(least, config)}}},
            {"tera_flops_per_second", flops / median.seconds / 1e12},
            {"tokens", stats.tokens()},
            {"tokens_floor", least.rows},
            {"steps", stats.steps},
            {"split_steps", stats.split_steps},
            {"tokens_per_step", static_cast<double>(stats.tokens()) / static_cast<double>(stats.steps)},
            {"seconds", seconds(median)},
            {"memory_gb", memory_gb(median)}};
  }

 private:
  static Workload read(const BenchOptions& options, double& seconds) {
    const Stopwatch watch(seconds);
    return read_workload(options.workload, find_method(options.packing.method).wording.skeleton);
  }

  /// Rows and picks as the engine counted them, keys from the graphs: a shared segment that was given up and
  /// computed again is not in those.
  Work work_done(const EngineStats& stats) const {
    WorkCount count;
    for (const Stack& stack : stacks_) count.add(stack);
    return {stats.tokens(), count.work().keys, stats.answer_tokens};
  }

  ordered_json seconds(const BenchRun& median) const {
    const double engine = runs_.front().engine_seconds;
    ordered_json all = ordered_json::array();
    for (const BenchRun& run : runs_) all.push_back(run.seconds);
    ordered_json device = ordered_json::object();
    for (const auto& [name, value] : median.stages) device[name] = value;
    return {{"start_up", ready_seconds_ + engine},
            {"start_up_parts",
             {{"workload", reading_seconds_},
              {"device", made_.device_seconds()},
              {"weights", made_.weights_seconds()},
              {"engine", engine}}},
            {"runs", all},
            {"work", median.seconds},
            {"backend", median.stats.step_seconds},
            {"waited", median.stats.waited_seconds},
            {"host", median.stats.host_seconds},
            {"idle", median.stats.idle_seconds},
            {"device", device}};
  }

  ordered_json memory_gb(const BenchRun& run) const {
    const double page_gb = static_cast<double>(page_bytes_) / 1e9;
    return {{"device_peak", static_cast<double>(made_.device_bytes()) / 1e9},
            {"kv_pool", run.pages * page_gb},
            {"kv_peak", run.stats.peak_pages * page_gb},
            {"host_peak", process_peak_bytes() / 1e9}};
  }

  const BenchOptions& options_;
  double reading_seconds_ = 0, ready_seconds_ = 0;
  Workload workload_;
  BenchBackend made_;
  std::vector<Stack> stacks_;
  EngineOptions engine_;
  int64_t page_bytes_ = 0;
  std::vector<BenchRun> runs_;    ///< in the order they were made
  std::vector<BenchRun> sorted_;  ///< those that count, fastest first
};

/// A workload's records have one document each.
std::vector<std::string> timed_methods() {
  std::vector<std::string> names;
  for (const Method& method : all_methods())
    if (!method.wording.experts) names.emplace_back(method.name);
  return names;
}

void write_calibration(const BenchOptions& options) {
  for (const std::string& shape : options.shapes) shape_by_name(shape);  // before two minutes are spent
  const NamedOutput file(options.calibration);
  const auto left_out = [](const std::string& text) { print_line(text, Stream::err); };
  file.write(calibration_text(calibrate(options.model.device, options.shapes, left_out, rewrite_line)));
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto* command =
      app.add_subcommand("bench", "Time a workload of token ids, with random weights or with a model's");
  auto options = std::make_shared<BenchOptions>();
  auto* workload = command->add_option("WORKLOAD", options->workload,
                                       "The workload: JSON lines of token ids (.gz and .zst too)");
  auto* model = command->add_option("--model", options->model.path,
                                    "Use the weights of this model: a GGUF file or a folder");
  command
      ->add_option("--shape", options->model.shape,
                   fmt::format("The model's shape: {}, or a config.json", fmt::join(shape_names(), ", ")))
      ->capture_default_str()
      ->excludes(model);
  command
      ->add_flag("--random-weights", options->random_weights,
                 "Use random weights of the shape (the default without --model)")
      ->excludes(model);
  command
      ->add_option("--method", options->packing.method,
                   "How prompts are packed (hpd uses the workload's slots)")
      ->check(one_of(timed_methods()))
      ->capture_default_str();
  command
      ->add_option("--documents", options->packing.documents,
                   "Contexts or documents per prompt (0: as many as fit)")
      ->check(whole_from(0));
  command->add_option("--prompt-tokens", options->packing.prompt_tokens, "The most tokens in a prompt")
      ->check(whole_from(1))
      ->capture_default_str();
  command
      ->add_option("--window", options->packing.window, "How many lines of the workload are planned together")
      ->check(whole_from(1))
      ->capture_default_str();
  command
      ->add_option("--tokens-per-step,--rows", options->tokens,
                   "Tokens per step (0: as many as suit the device)")
      ->check(whole_from(0));
  command
      ->add_option("--device", options->device,
                   "Where to compute: cuda, cuda:N, N, or cpu (for small shapes)")
      ->capture_default_str();
  command->add_flag(
      "--reproducible", options->model.reproducible,
      "Compute each answer in a fixed order, so that other prompts in the batch do not change it");
  command
      ->add_option("--repeat", options->repeat,
                   "How many times to run; if more than one, the first run warms up and the median of the "
                   "others counts")
      ->check(whole_from(1))
      ->capture_default_str();
  auto* calibrate_to =
      command
          ->add_option(
              "--calibrate", options->calibration,
              "Time made-up steps instead, and write a calibration for `sheaf estimate` to this file")
          ->excludes(workload);
  command
      ->add_option("--shapes", options->shapes,
                   "Shapes to calibrate with (default: some that suit the device)")
      ->delimiter(',')
      ->needs(calibrate_to);
  command->callback([options] {
    options->model.device = parse_device(options->device, "--device");
    if (!options->calibration.empty()) return write_calibration(*options);
    if (options->workload.empty()) refuse("bench: give a workload to time, or --calibrate FILE");
    Bench bench(*options);
    bench.run();
    print_json(bench.report(), -1);
  });
}

}  // namespace sheaf

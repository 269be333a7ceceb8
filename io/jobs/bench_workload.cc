#include "io/jobs/bench_workload.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/stopwatch.h"
#include "core/engine/engine.h"
#include "core/methods/method.h"
#include "core/segments/work_count.h"
#include "io/base/process.h"
#include "io/files/workload.h"
#include "io/jobs/bench_run.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

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
    const double limit =
        least_seconds(least, config, options_.model.dtype == Precision::fp8 ? kFp8Rates : PeakRates{});
    const auto items = static_cast<double>(workload_.questions);
    const std::string& model = options_.model.path;
    return {{"workload", workload_.name},
            {"shape", model.empty() ? options_.model.shape : model},
            {"weights", model.empty() ? "random" : "loaded"},
            {"method", options_.packing.method.name},
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
    return read_workload(options.workload, find_method(options.packing.method.name).wording.skeleton);
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
    for (const auto& [stage, value] : median.stages) device[stage_name(stage)] = value;
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
  std::vector<BenchRun> sorted_;  ///< runs that count, fastest first
};

}  // namespace

ordered_json bench_workload(const BenchOptions& options) {
  Bench bench(options);
  bench.run();
  return bench.report();
}

}  // namespace sheaf

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/backend/peak_rates.h"
#include "core/base/error.h"
#include "core/base/stopwatch.h"
#include "core/methods/method.h"
#include "core/plan/planner.h"
#include "core/segments/stack.h"
#include "io/base/process.h"
#include "io/jobs/bench.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

ordered_json in_tera(const Work& work, const ModelConfig& config) {
  const double gemm = gemm_flops(work, config), attention = attention_flops(work, config);
  return {{"total", (gemm + attention) / 1e12}, {"gemm", gemm / 1e12}, {"attention", attention / 1e12}};
}

/// What `after` has more than `before`.
TimedStages difference(const TimedStages& before, TimedStages after) {
  for (auto& [stage, seconds] : after)
    for (const auto& [old_stage, old_seconds] : before)
      if (stage == old_stage) seconds -= old_seconds;
  return after;
}

/// Everything laid out for timing a workload.
class Bench {
 public:
  explicit Bench(const BenchSettings& settings)
      : settings_(settings), workload_(read(settings, reading_seconds_)), made_(settings.model) {
    const ModelConfig& config = made_.config();
    if (workload_.vocab > config.vocab)
      refuse("{}: the workload has token ids up to {}, but the model has only {} tokens", settings_.workload,
             workload_.vocab - 1, config.vocab);
    stacks_ = pack(workload_, settings_.packing, config.context);
    Backend& backend = made_.backend();
    engine_.tokens_per_step = settings_.tokens > 0 ? settings_.tokens : backend.preferred_tokens();
    page_bytes_ = backend.kv_bytes_per_token() * engine_.page_size;
    const int64_t pages = std::min(made_.kv_bytes() / page_bytes_, most_pages(stacks_, engine_.page_size));
    engine_.pages = static_cast<int32_t>(std::clamp<int64_t>(pages, 1, INT32_MAX / engine_.page_size));
    ready_seconds_ = process_seconds();
  }

  void run() {
    for (int32_t i = 0; i < settings_.repeat; ++i)
      runs_.push_back(run_once(made_.backend(), engine_, stacks_));
    sorted_.assign(runs_.begin() + (runs_.size() > 1 ? 1 : 0), runs_.end());
    std::ranges::sort(sorted_, {}, &BenchRun::seconds);
  }

  ordered_json report() {
    const BenchRun& median = sorted_[sorted_.size() / 2];
    const EngineStats& stats = median.stats;
    const ModelConfig& config = made_.config();
    const Work least = least_work(workload_, layer_windows(config));
    if (stats.answer_tokens != least.picks)
      fail("{} answer tokens were decoded, but {} were expected", stats.answer_tokens, least.picks);
    const Work done = work_done(stats);
    const double flops = gemm_flops(done, config) + attention_flops(done, config);
    const double limit =
        least_seconds(least, config, settings_.model.dtype == Precision::fp8 ? kFp8Rates : PeakRates{});
    const auto items = static_cast<double>(workload_.questions);
    const std::string& model = settings_.model.path;
    return {{"workload", workload_.name},
            {"shape", model.empty() ? settings_.model.shape : model},
            {"weights", model.empty() ? "random" : "loaded"},
            {"method", settings_.packing.method.name},
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
  static Workload read(const BenchSettings& settings, double& seconds) {
    const Stopwatch watch(seconds);
    const Wording& wording = find_method(settings.packing.method.name).wording;
    return read_workload(settings.workload, wording.skeleton, wording.one_by_one);
  }

  /// Rows and picks as the engine counted them, keys from the graphs: a shared segment that was given up and
  /// computed again is not in those.
  Work work_done(const EngineStats& stats) const {
    WorkCount count(layer_windows(made_.config()));
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

  const BenchSettings& settings_;
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

bool asks_for_objects(const Job::Method& method) {
  return find_method(method.name).wording.answers == AnswerForm::object;
}

std::vector<Stack> pack(const Workload& workload, const BenchPacking& packing, int32_t context) {
  Planner planner(make_builder(packing.method),
                  {context, packing.method.prompt_tokens, [](const Stack&) { return true; }});
  std::vector<ReadyRecord> rows = workload_rows(workload);
  if (find_method(packing.method.name).wording.answers == AnswerForm::list)
    for (ReadyRecord& row : rows) row.parts = ask_together(std::move(row.parts));
  std::vector<Stack> stacks;
  for (std::span<const ReadyRecord> rest = rows; !rest.empty();) {
    const auto window = rest.first(std::min(rest.size(), static_cast<size_t>(packing.window)));
    Plan plan = planner.plan({window.begin(), window.end()});
    if (!plan.refused.empty()) refuse("{}: a line cannot be used: {}", workload.name, plan.refused[0].second);
    std::ranges::move(plan.stacks, std::back_inserter(stacks));
    rest = rest.subspan(window.size());
  }
  return stacks;
}

int64_t pages_at_once(const Stack& stack, int32_t page_size) {
  int64_t pages = 0;
  for (const int32_t keys : stack.most_keys()) pages += pages_for(keys, page_size);
  return stack.next ? std::max(pages, pages_at_once(stack.next->longest(), page_size)) : pages;
}

int64_t most_pages(const std::vector<Stack>& stacks, int32_t page_size) {
  int64_t pages = 0;
  for (const Stack& stack : stacks) {
    for (const int32_t keys : stack.most_keys()) pages += pages_for(keys, page_size);
    if (stack.next) pages += most_pages({stack.next->longest()}, page_size);
  }
  return pages;
}

BenchRun run_once(Backend& backend, const EngineOptions& options, std::vector<Stack> stacks) {
  BenchRun run;
  const StopRules rules(backend.config().vocab, {});
  std::optional<Engine> engine;
  {
    const Stopwatch watch(run.engine_seconds);
    engine.emplace(backend, rules, options);
  }
  for (const Stack& stack : stacks)
    if (!engine->fits(stack))
      refuse(
          "a prompt of {} tokens does not fit the memory left for keys and values; lower --prompt-tokens or "
          "--documents",
          stack.prompt_tokens());
  const TimedStages before = backend.stage_seconds();
  {
    const Stopwatch watch(run.seconds);
    size_t next = 0;
    engine->run(
        [&]() -> std::optional<Stack> {
          if (next == stacks.size()) return std::nullopt;
          return std::move(stacks[next++]);
        },
        [](Stack&&, std::vector<Answer>&&) {});
  }
  run.stats = engine->stats();
  run.pages = engine->pages();
  run.stages = difference(before, backend.stage_seconds());
  return run;
}

ordered_json bench_workload(const BenchSettings& settings) {
  if (const std::string trouble = questions_trouble(settings.packing.method, TaskKind::none);
      !trouble.empty())
    refuse("--questions {}: {}", settings.packing.method.questions, trouble);
  Bench bench(settings);
  bench.run();
  return bench.report();
}

}  // namespace sheaf

#include "io/jobs/bench_run.h"

#include <optional>

#include "core/base/error.h"
#include "core/base/stopwatch.h"

namespace sheaf {
namespace {

/// What `after` has more than `before`.
TimedStages difference(const TimedStages& before, TimedStages after) {
  for (auto& [stage, seconds] : after)
    for (const auto& [old_stage, old_seconds] : before)
      if (stage == old_stage) seconds -= old_seconds;
  return after;
}

}  // namespace

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

}  // namespace sheaf

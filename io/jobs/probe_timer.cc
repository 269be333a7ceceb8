#include "io/jobs/probe_timer.h"

#include <algorithm>
#include <chrono>

#include "io/base/process.h"

namespace sheaf {
namespace {

constexpr int32_t kLeastSteps = 3;
constexpr double kSeconds = 0.15;
constexpr double kNever = 1e30;

StageSeconds stages_of(const Backend& backend) {
  StageSeconds seconds;
  for (const auto& [stage, value] : backend.stage_seconds()) {
    if (stage == Stage::attention)
      seconds.attention += value;
    else if (stage == Stage::pick)
      seconds.pick += value;
    else if (stage == Stage::norms || stage == Stage::other)
      seconds.rest += value;
    else
      seconds.products += value;
  }
  return seconds;
}

}  // namespace

ProbeTimer::ProbeTimer(const BenchModel& model)
    : made_(model), threads_(made_.on_gpu() ? 0 : usable_cores().threads()) {
  most_pages_ = made_.kv_bytes() / (made_.backend().kv_bytes_per_token() * kPageSize);
}

StepTime ProbeTimer::time_step(const Probe& probe) {
  const StepBatch batch = make_probe_batch(probe, kPageSize);
  const auto pages = static_cast<int32_t>(probe.pages(kPageSize));
  std::vector<Picked> picked(batch.picks.size());
  Backend& backend = made_.backend();
  pages_ = std::max(pages_, pages);
  // A new pool also starts the backend's clocks again; the step before it takes memory for
  // activations.
  backend.allocate_kv(pages_, kPageSize);
  backend.step(batch, picked);
  backend.allocate_kv(pages_, kPageSize);
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  double total = 0, undisturbed = kNever, processor = kNever;
  int32_t steps = 0;
  while (steps < kLeastSteps || (total < kSeconds && steps < 1000)) {
    const ProcessUse before = process_use();
    const auto begin = Clock::now();
    backend.step(batch, picked);
    const auto end = Clock::now();
    const ProcessUse after = process_use();
    const double wall = std::chrono::duration<double>(end - begin).count();
    if (after.interruptions == before.interruptions) undisturbed = std::min(undisturbed, wall);
    processor = std::min(processor, after.seconds - before.seconds);
    total = std::chrono::duration<double>(end - start).count();
    ++steps;
  }
  const StageSeconds stages = stages_of(backend) * (1.0 / steps);
  // A GPU's clock falls when it works for long, as it will in a job: there the mean counts.
  if (threads_ == 0) return {stages, total / steps};
  // Where others took the processor in every step, its seconds say more: threads that wait for each other
  // spin.
  return {stages, undisturbed < kNever ? undisturbed : processor / threads_};
}

}  // namespace sheaf

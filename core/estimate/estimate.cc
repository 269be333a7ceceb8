#include "core/estimate/estimate.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace sheaf {
namespace {

/// Seconds from the start of the program until a GPU answers and its kernels are loaded.
constexpr double kDeviceStart = 0.5;

/// What `tokens` take, from what the sample and its first half take: they differ in what more tokens cost;
/// the start and the thin last steps come once. Fewer than the half's take no less than their share of it.
struct Stretch {
  double half, sample, tokens;

  double operator()(double of_half, double of_sample) const {
    // A second half with next to nothing to compute says nothing of the rest.
    if (sample - half < sample / 8) return of_sample * tokens / sample;
    const double line = of_sample + (of_sample - of_half) * (tokens - sample) / (sample - half);
    return tokens < half ? std::max(line, of_half * tokens / half) : line;
  }
};

[[noreturn]] void refuse_all(const EstimateCase& asked, const PlannedRows& planned) {
  if (planned.longest <= asked.config.context)
    refuse("none of the {} rows looked at can be asked on {}: {}", planned.refused, asked.hardware->name,
           planned.reason);
  refuse(
      "all {} rows looked at are too long for {}: it has {} positions and the longest row needs {}; {}take a "
      "model "
      "with a longer context{}",
      planned.refused, asked.model, asked.config.context, planned.longest,
      asked.method.name == "pced" ? "" : "set input.too_long to truncate or split, or ",
      asked.method.name == "pced" ? " or shorter documents" : "");
}

double share_of_options(const std::vector<Stack>& stacks) {
  size_t slots = 0, options = 0;
  for (const Stack& stack : stacks) {
    slots += stack.slots.size();
    options += static_cast<size_t>(
        std::ranges::count_if(stack.slots, [](const Slot& slot) { return slot.allowed != nullptr; }));
  }
  return slots > 0 ? static_cast<double>(options) / static_cast<double>(slots) : 0;
}

}  // namespace

Estimate estimate(const EstimateCase& asked, const SampledRows& rows) {
  const Hardware& hardware = *asked.hardware;
  Estimate result;
  result.memory = plan_memory(asked.config, hardware, asked.use);
  if (!result.memory.fits())
    refuse(
        "{} needs {:.1f} GB for weights and a step, and {} has {:.1f} GB; sheaf runs a model on one device",
        asked.model, (result.memory.weights + result.memory.activations / 4) / 1e9, hardware.name,
        hardware.memory / 1e9);
  const int64_t sample = std::min(rows.sample, rows.whole);
  const auto run = [&](PlannedRows planned) {
    return simulate(asked.config, hardware, result.memory, rows.answer_tokens(asked.method),
                    std::move(planned.stacks));
  };
  PlannedRows planned = rows.plan(asked, result.memory, sample);
  if (planned.stacks.empty() && planned.refused > 0) refuse_all(asked, planned);
  const int64_t refused = planned.refused;
  result.known_answers = share_of_options(planned.stacks);
  const SimulatedRun whole = run(std::move(planned));
  if (!(whole.seconds > 0)) refuse("the sample has nothing to decode; --sample takes more rows of it");
  const EngineStats& counted = whole.engine;
  const double all = static_cast<double>(rows.whole) / static_cast<double>(sample);
  const auto tokens = static_cast<double>(counted.rows());
  result.work_seconds = whole.seconds;
  result.steps = static_cast<double>(counted.steps);
  // Every device has an equal part of the rows.
  if (const double part = all / asked.devices; sample > 1 && part != 1) {
    const SimulatedRun half = run(rows.plan(asked, result.memory, sample / 2));
    const Stretch stretched{static_cast<double>(half.engine.rows()), tokens, tokens * part};
    result.work_seconds = stretched(half.seconds, whole.seconds);
    result.steps = stretched(static_cast<double>(half.engine.steps), result.steps);
  }
  const double stretch = result.work_seconds / whole.seconds;
  result.refused = std::llround(static_cast<double>(refused) * all);
  result.rows = rows.whole - result.refused;
  result.rejected = rows.rejected;
  result.answers = static_cast<double>(counted.answers) * all;
  result.answer_tokens = static_cast<double>(counted.answer_tokens) / static_cast<double>(counted.answers);
  result.tokens = tokens * all;
  result.tokens_alone = static_cast<double>(counted.alone_rows) * all;
  result.kv_peak = static_cast<double>(counted.peak_pages) * kEstimatePageSize *
                   static_cast<double>(result.memory.kv_bytes_per_token);
  result.stages = {whole.stages.products * stretch, whole.stages.attention * stretch,
                   whole.stages.rest * stretch, whole.stages.pick * stretch};
  result.pick_seconds = result.stages.pick;
  result.decode_seconds = whole.decode_seconds * stretch;
  result.prefill_seconds = result.stages.total() - result.pick_seconds - result.decode_seconds;
  result.host_seconds = whole.host_seconds * stretch;
  result.open_seconds = (hardware.gpu ? kDeviceStart : 0) + result.memory.weights / hardware.load_rate;
  result.price = hardware.price(asked.devices);
  result.job_usd_per_hour = asked.usd_per_hour * asked.devices;
  result.usd_per_hour = result.price ? result.price->usd_per_hour : result.job_usd_per_hour;
  result.sampling_error = rows.error(asked);
  result.device_error = hardware.device.widened(hardware.error, asked.config);
  result.error = std::hypot(result.device_error, result.sampling_error);
  return result;
}

}  // namespace sheaf

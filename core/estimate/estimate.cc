#include "core/estimate/estimate.h"

#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>

#include "core/backend/footprint.h"
#include "core/base/error.h"
#include "core/methods/method.h"

namespace sheaf {
namespace {

/// Seconds from the start of the program until a GPU answers and its kernels are loaded.
constexpr double kDeviceStart = 0.5;
/// Full steps that are simulated at least where a corpus has as many: fewer are mostly start and end.
constexpr double kSteps = 16;

/// Rows as they would run.
struct LookedAt {
  int64_t records = 0;
  double options = 0;      ///< share of the answers
  PlannedRecords planned;  ///< without the stacks, which were run
  SimulatedRun run;

  auto tokens() const { return static_cast<double>(run.engine.tokens()); }
  auto steps() const { return static_cast<double>(run.engine.steps); }
};

/// The second half came in steps of its own. Where it only made the first half's fuller it says nothing of
/// what more records take.
bool adds_steps(const LookedAt& half, const LookedAt& whole, const MemoryPlan& memory) {
  return whole.tokens() - half.tokens() <= memory.tokens_per_step * (whole.steps() - half.steps() + 1);
}

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

[[noreturn]] void refuse_all(const EstimateCase& asked, const PlannedRecords& planned) {
  if (planned.unheld > 0)
    refuse("none of the {} sampled records fits {}: the keys and values of a prompt need more memory; {}",
           planned.refused, asked.hardware->name, memory_advice(asked));
  if (planned.longest <= asked.config.context)
    refuse("none of the {} sampled records can run on {}: {}", planned.refused, asked.hardware->name,
           planned.reason);
  const bool chains = find_method(asked.method.name).wording.one_by_one;
  refuse(
      "all {} sampled records are too long for {}: it has {} positions, but the longest record needs {}; "
      "{}use a model with a longer context{}",
      planned.refused, asked.model, asked.config.context, planned.longest,
      chains ? "" : "set input.too_long to truncate or split, or ", chains ? " or shorter documents" : "");
}

double share_of_options(const std::vector<Stack>& stacks) {
  size_t slots = 0, options = 0;
  const auto count = [&](const Stack& stack) {
    slots += stack.slots.size();
    options += static_cast<size_t>(
        std::ranges::count_if(stack.slots, [](const Slot& slot) { return slot.allowed != nullptr; }));
  };
  for (const Stack& stack : stacks) count(stack.feeds_next() ? stack.next->longest() : stack);
  return slots > 0 ? static_cast<double>(options) / static_cast<double>(slots) : 0;
}

}  // namespace

std::string memory_advice(const EstimateCase& asked) {
  const bool one_question = find_method(asked.method.name).one_question;
  return fmt::format(
      "use {}, a smaller method.max_value_tokens{} or shorter documents",
      asked.engine.kv_memory_gb > 0 ? "a larger engine.kv_memory_gb" : "a device with more memory",
      one_question ? "" : ", a method with fewer questions per prompt");
}

std::string fewer_bits_advice(const EstimateCase& asked) {
  if (!asked.hardware->gpu) return "";
  std::vector<std::string> ways;
  const auto add = [&](EstimateCase smaller, std::string_view way) {
    const MemoryPlan memory = plan_memory(smaller);
    if (memory.fits()) ways.push_back(fmt::format("{} ({:.1f} GB)", way, memory.weights / 1e9));
  };
  Hardware fp8 = *asked.hardware;
  fp8.wanted = Precision::fp8;
  if (asked.hardware->wanted != Precision::fp8 && fp8.computes_as_wanted()) {
    EstimateCase smaller = asked;
    smaller.hardware = &fp8;
    add(smaller, "--dtype fp8");
  }
  if (!plan_memory(asked).packed) {
    EstimateCase smaller = asked;
    smaller.weights = WeightStorage::packed;
    add(smaller, "--packed, from a file with 4-bit weights");
  }
  if (ways.empty()) return "";
  return fmt::format("; it fits with {}: add {} to see what that costs", fmt::join(ways, " or with "),
                     ways.size() > 1 ? "one of them" : "it");
}

Estimate estimate(const EstimateCase& asked, const SampledRecords& records) {
  const Hardware& hardware = *asked.hardware;
  Estimate result;
  result.memory = plan_memory(asked);
  if (!result.memory.fits())
    refuse(
        "{} needs {:.1f} GB for weights and a step, but {} has {:.1f} GB; sheaf runs a model on one device{}",
        asked.model, (result.memory.weights + result.memory.activations / 4) / 1e9, hardware.name,
        hardware.memory / 1e9, fewer_bits_advice(asked));
  const auto look = [&](int64_t count) {
    PlannedRecords planned = records.plan(asked, result.memory, count);
    if (planned.stacks.empty() && planned.refused > 0 && count >= std::min(records.sample, records.whole))
      refuse_all(asked, planned);
    LookedAt seen{count, share_of_options(planned.stacks), std::move(planned), {}};
    seen.run =
        simulate(asked, result.memory, records.answer_tokens(asked.method), std::move(seen.planned.stacks));
    return seen;
  };
  LookedAt sample = look(std::min(records.sample, records.whole)), half;
  if (!(sample.run.seconds > 0)) refuse("the sample has nothing to decode; use a larger --sample");
  // Every device has an equal part of the records.
  const int64_t share = (records.whole + asked.cost.devices - 1) / asked.cost.devices;
  if (sample.records > 1 && sample.records != share) half = look(sample.records / 2);
  while (sample.records < share) {
    const bool enough = sample.tokens() >= kSteps * result.memory.tokens_per_step;
    if (sample.records > 1 && ((enough && adds_steps(half, sample, result.memory)) ||
                               2 * sample.tokens() > static_cast<double>(records.most_tokens)))
      break;
    half = std::move(sample);
    sample = look(std::min(share, 2 * half.records));
  }
  const SimulatedRun& whole = sample.run;
  const EngineStats& counted = whole.engine;
  const double all = static_cast<double>(records.whole) / static_cast<double>(sample.records);
  const double tokens = sample.tokens();
  result.known_answers = sample.options;
  result.work_seconds = whole.seconds;
  result.steps = sample.steps();
  if (const double part = all / asked.cost.devices; part != 1) {
    if (part > 1 && !adds_steps(half, sample, result.memory)) half = sample;  // by the share of tokens
    const Stretch stretched{half.tokens(), tokens, tokens * part};
    result.work_seconds = stretched(half.run.seconds, whole.seconds);
    result.steps = std::max(stretched(half.steps(), result.steps),
                            std::ceil(tokens * part / result.memory.tokens_per_step));
  }
  const double stretch = result.work_seconds / whole.seconds;
  result.refused = std::llround(static_cast<double>(sample.planned.refused) * all);
  result.unheld = std::llround(static_cast<double>(sample.planned.unheld) * all);
  result.rows = records.whole - result.refused;
  result.rejected = records.rejected;
  result.answers = static_cast<double>(counted.answers) * all;
  result.answer_tokens = static_cast<double>(counted.answer_tokens - counted.first_tokens) /
                         static_cast<double>(counted.answers);
  if (const auto found = static_cast<double>(counted.first_answers); found > 0) {
    result.findings = found * all;
    result.finding_tokens = static_cast<double>(counted.first_tokens) / found;
  }
  result.entry_answers = static_cast<double>(counted.entry_answers) * all;
  result.entry_tokens = static_cast<double>(counted.entry_tokens) * all;
  result.tokens = tokens * all;
  result.phases = whole.phases * all;
  result.tokens_alone = static_cast<double>(counted.alone_tokens) * all;
  result.kv_peak = static_cast<double>(counted.peak_pages) * kPageSize *
                   static_cast<double>(result.memory.kv_bytes_per_token);
  result.stages = whole.stages * stretch;
  result.decode_seconds = whole.decode_seconds * stretch;
  result.host_seconds = whole.host_seconds * stretch;
  result.open_seconds = (hardware.gpu ? kDeviceStart : 0) + result.memory.weights / hardware.load_rate;
  result.price = hardware.price(asked.cost.devices);
  if (asked.cost.hardware.empty() || asked.cost.hardware == hardware.name)
    result.job_usd_per_hour = asked.cost.usd_per_hour * asked.cost.devices;
  result.sampling_error = records.error(asked);
  result.device_error = hardware.device.widened(hardware.error, asked.config);
  result.error = std::hypot(result.device_error, result.sampling_error);
  return result;
}

}  // namespace sheaf

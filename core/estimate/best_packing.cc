#include <algorithm>
#include <fmt/ranges.h>
#include <limits>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "core/estimate/estimate.h"
#include "core/methods/method.h"
#include "core/text/format.h"

namespace sheaf {
namespace {

struct Setting {
  Packing packing;
  double work_seconds = 0;
};

/// `tokens_per_step`: as planned, where the case leaves it open.
Packing packing_of(const EstimateCase& asked, int32_t tokens_per_step) {
  return {asked.method.documents, asked.method.prompt_tokens, tokens_per_step};
}

EstimateCase with(EstimateCase asked, const Packing& packing) {
  asked.method.documents = packing.documents;
  asked.method.prompt_tokens = packing.prompt_tokens;
  asked.engine.tokens_per_step = packing.tokens_per_step;
  return asked;
}

/// The sizes of all prompts: settings that lead to the same ones need to be tried once.
using Shape = std::vector<std::pair<int64_t, size_t>>;

Shape shape_of(const EstimateCase& asked, const SampledRecords& rows) {
  const MemoryPlan memory = plan_memory(asked);
  Shape shape;
  for (const Stack& stack : rows.plan(asked, memory, std::min(rows.sample, rows.whole)).stacks)
    shape.emplace_back(stack.prompt_tokens(), stack.slots.size());
  return shape;
}

// What a simulation takes, in tokens: a decoded one takes as long as four others.
constexpr int64_t kDecoded = 4, kOneCost = 200'000, kAllCost = 50 * kOneCost;

int64_t cost_of(const EstimateCase& asked, const SampledRecords& rows) {
  const MemoryPlan memory = plan_memory(asked);
  const int32_t assumed = rows.answer_tokens(asked.method);
  int64_t tokens = 0;
  const auto count = [&](const Stack& stack) {
    tokens += stack.prompt_tokens();
    for (const Slot& slot : stack.slots) {
      const int32_t answer = slot.allowed || stack.feeds_next() || assumed == 0
                                 ? slot.max_tokens
                                 : std::min(slot.max_tokens, assumed);
      tokens += kDecoded * answer * static_cast<int64_t>(1 + slot.chain_priors.size());
    }
  };
  for (const Stack& stack : rows.plan(asked, memory, std::min(rows.sample, rows.whole)).stacks) {
    count(stack);
    if (stack.next) count(stack.next->expected());
  }
  return std::max<int64_t>(1, tokens);
}

/// Fewer rows where they have many tokens: so that the search takes a moment.
SampledRecords fewer_rows(const EstimateCase& asked, SampledRecords rows) {
  constexpr int64_t kFewest = 32;
  const int64_t cost = cost_of(asked, rows);
  rows.most_tokens = kOneCost;
  if (cost > kOneCost)
    rows.sample = std::min(rows.sample, std::max(kFewest, rows.sample * kOneCost / cost));
  else  // a few rows are repeated: packings of more than there are differ too
    rows.sample = std::max(rows.sample, std::min(kFewest, rows.whole));
  return rows;
}

/// The first and others from all over the list.
void thin_out(std::vector<Setting>& settings, size_t most) {
  if (settings.size() <= most) return;
  std::vector<Setting> some;
  for (size_t i = 0; i < most; ++i) some.push_back(settings[i * settings.size() / most]);
  settings = std::move(some);
}

/// Prompts that differ, what was asked for first.
std::vector<Setting> packings(const EstimateCase& asked, const SampledRecords& rows, const Packing& given) {
  if (!find_method(asked.method.name).takes_documents) return {{given}};  // one document a prompt
  std::vector<Setting> found = {{given}};
  std::set<Shape> seen = {shape_of(with(asked, given), rows)};
  for (const int32_t tokens : {given.prompt_tokens, 4096, 16384, 65536})
    for (const int32_t documents : {1, 2, 4, 8, 16, 32, 0}) {
      const Packing packing{documents, tokens, given.tokens_per_step};
      if (seen.insert(shape_of(with(asked, packing), rows)).second) found.push_back({packing});
    }
  return found;
}

/// A step must fit as it is: a run would halve it.
bool fits(const EstimateCase& asked) {
  const MemoryPlan memory = plan_memory(asked);
  return memory.fits() && memory.weights + memory.activations + memory.pool < memory.usable;
}

void try_all(std::vector<Setting>& settings, const EstimateCase& asked, const SampledRecords& rows) {
  ThreadPool threads(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  threads.run(static_cast<int64_t>(settings.size()), [&](int64_t i, int) {
    Setting& setting = settings[static_cast<size_t>(i)];
    try {
      setting.work_seconds = estimate(with(asked, setting.packing), rows).work_seconds;
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      setting.work_seconds = std::numeric_limits<double>::infinity();
    }
  });
}

}  // namespace

BestPacking find_best_packing(const EstimateCase& asked, const SampledRecords& all_rows, double as_asked) {
  const int32_t usual = plan_memory(asked).tokens_per_step;
  const Packing given = packing_of(asked, usual);
  const SampledRecords rows = fewer_rows(with(asked, given), all_rows);
  // Where even few rows take long (long answers), fewer settings are tried.
  const auto most =
      static_cast<size_t>(std::clamp<int64_t>(kAllCost / cost_of(with(asked, given), rows), 9, 50));
  std::vector<Setting> tried = packings(asked, rows, given);
  thin_out(tried, most / 2);
  try_all(tried, asked, rows);
  std::vector<Setting> kept = tried;
  std::ranges::stable_sort(kept, {}, &Setting::work_seconds);
  // Packings that are tried with other steps too.
  kept.resize(std::min({kept.size(), size_t{4}, std::max<size_t>(1, most / 10)}));
  std::vector<Setting> steps;
  for (const Setting& each : kept)
    for (const int32_t step : {usual / 8, usual / 4, usual / 2, usual * 2, usual * 4}) {
      Packing packing = each.packing;
      packing.tokens_per_step = std::max(16, step);
      if (fits(with(asked, packing))) steps.push_back({packing});
    }
  try_all(steps, asked, rows);
  tried.insert(tried.end(), steps.begin(), steps.end());
  Setting best = tried[0];
  // A change must be worth it: packing more than needed only takes memory.
  for (const Setting& each : tried)
    if (each.work_seconds < best.work_seconds * 0.995) best = each;
  double seconds = as_asked;
  if (best.packing != given) seconds = estimate(with(asked, best.packing), all_rows).work_seconds;
  const auto count = static_cast<int32_t>(tried.size());
  if (seconds > 0.995 * as_asked) return {given, as_asked, count};
  return {best.packing, seconds, count};
}

std::string fitting_devices(EstimateCase asked, const HardwareList& list) {
  std::vector<std::string> names;
  for (const Hardware& each : list.devices) {
    asked.hardware = &each;
    if (each.gpu && each.computes_as_wanted() && plan_memory(asked).fits()) names.push_back(each.name);
  }
  return names.empty()
             ? "every device holds the whole model (several share the corpus, not the weights), and "
               "no GPU in the list has enough memory"
             : fmt::format("it fits {}", fmt::join(names, ", "));
}

std::string best_text(const EstimateCase& asked, const Estimate& each, const BestPacking& best) {
  const Packing given = packing_of(asked, each.memory.tokens_per_step), &found = best.packing;
  std::vector<std::string> changes;
  if (found.documents != given.documents)
    changes.push_back(
        fmt::format("documents {}{}", found.documents, found.documents ? "" : " (as many as fit)"));
  if (found.prompt_tokens != given.prompt_tokens)
    changes.push_back(fmt::format("prompt_tokens {}", found.prompt_tokens));
  if (found.tokens_per_step != given.tokens_per_step)
    changes.push_back(fmt::format("tokens_per_step {}", found.tokens_per_step));
  const std::string tried = fmt::format("({} settings tried)", best.tried);
  if (changes.empty()) return fmt::format("best      the current settings {}", tried);
  const std::string now = time_text(each.work_seconds), then = time_text(best.work_seconds);
  return fmt::format("best      {}: {}{:.0f} % less {}", fmt::join(changes, ", "),
                     now == then ? "" : fmt::format("{} of work instead of {}, ", then, now),
                     100 * (1 - best.work_seconds / each.work_seconds), tried);
}

nlohmann::ordered_json best_json(const BestPacking& best) {
  return {{"documents", best.packing.documents},
          {"prompt_tokens", best.packing.prompt_tokens},
          {"tokens_per_step", best.packing.tokens_per_step},
          {"work_seconds", best.work_seconds},
          {"tried", best.tried}};
}

}  // namespace sheaf

#include "core/estimate/best_packing.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <set>
#include <thread>

namespace sheaf {
namespace {

struct Setting {
  int32_t documents = 0, prompt_tokens = 0, rows_per_step = 0;
  double work_seconds = 0;
};

EstimateCase with(EstimateCase asked, const Setting& setting) {
  asked.method.documents = setting.documents;
  asked.method.prompt_tokens = setting.prompt_tokens;
  asked.use.rows_per_step = setting.rows_per_step;
  return asked;
}

/// The sizes of all prompts: settings that lead to the same ones need to be tried once.
using Shape = std::vector<std::pair<int64_t, size_t>>;

Shape shape_of(const EstimateCase& asked, const SampledRows& rows) {
  const MemoryPlan memory = plan_memory(asked.config, *asked.hardware, asked.use);
  Shape shape;
  for (const Stack& stack : rows.plan(asked, memory, std::min(rows.sample, rows.whole)).stacks)
    shape.emplace_back(stack.prompt_tokens(), stack.slots.size());
  return shape;
}

/// Prompts that differ, what was asked for first.
std::vector<Setting> packings(const EstimateCase& asked, const SampledRows& rows, int32_t rows_per_step) {
  const Setting given{asked.method.documents, asked.method.prompt_tokens, rows_per_step};
  const std::string& method = asked.method.name;
  if (method != "ippd" && method != "parallel-prompting" && method != "hpd") return {given};
  std::vector<Setting> found = {given};
  std::set<Shape> seen = {shape_of(with(asked, given), rows)};
  for (const int32_t tokens : {given.prompt_tokens, 4096, 16384, 65536})
    for (const int32_t documents : {1, 2, 4, 8, 16, 32, 0}) {
      const Setting setting{documents, tokens, rows_per_step};
      if (seen.insert(shape_of(with(asked, setting), rows)).second) found.push_back(setting);
    }
  return found;
}

/// A step must fit as it is: a run would halve it.
bool fits(const EstimateCase& asked) {
  const MemoryPlan memory = plan_memory(asked.config, *asked.hardware, asked.use);
  return memory.fits() && memory.weights + memory.activations + memory.pool < memory.room;
}

}  // namespace

BestPacking find_best_packing(const EstimateCase& asked, const SampledRows& rows) {
  const int32_t usual = plan_memory(asked.config, *asked.hardware, asked.use).rows_per_step;
  std::vector<Setting> settings;
  for (const Setting& packing : packings(asked, rows, usual))
    for (const int32_t step : {usual, usual / 4, usual / 2, usual * 2, usual * 4}) {
      Setting setting = packing;
      setting.rows_per_step = std::max(16, step);
      if (settings.empty() || fits(with(asked, setting))) settings.push_back(setting);
    }
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < settings.size(); i = next++) try {
        settings[i].work_seconds = estimate(with(asked, settings[i]), rows).work_seconds;
      } catch (const std::exception&) {  // what was asked is estimated elsewhere; the others need not do
        settings[i].work_seconds = std::numeric_limits<double>::infinity();
      }
  };
  {
    std::vector<std::jthread> threads(std::max(1u, std::thread::hardware_concurrency()));
    for (std::jthread& thread : threads) thread = std::jthread(work);
  }
  const Setting* best = &settings[0];
  // A change must be worth it: packing more than needed only takes memory.
  for (const Setting& each : settings)
    if (each.work_seconds < best->work_seconds * 0.995) best = &each;
  return {best->documents, best->prompt_tokens, best->rows_per_step, best->work_seconds,
          static_cast<int32_t>(settings.size())};
}

}  // namespace sheaf

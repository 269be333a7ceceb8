#include "core/estimate/estimate.h"

#include <algorithm>

#include "core/error.h"

namespace sheaf {
namespace {

/// Seconds from the start of the program until a GPU answers and its kernels are loaded.
constexpr double kDeviceStart = 0.5;

/// What `rows` rows take, from what the sample and its first half take: they differ in what more rows cost;
/// the start and the thin last steps come once. Fewer rows than the half take no less than their share of it.
double extrapolated(double half, double sample, double half_rows, double sample_rows, double rows) {
  const double line = sample + (sample - half) * (rows - sample_rows) / (sample_rows - half_rows);
  return rows < half_rows ? std::max(line, half * rows / half_rows) : line;
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
  const auto run = [&](int64_t count) {
    return simulate(asked.config, hardware, result.memory, rows.answer_tokens(asked.method),
                    rows.stacks(asked, result.memory, count));
  };
  const SimulatedRun whole = run(sample);
  if (!(whole.seconds > 0)) refuse("the sample has nothing to decode; --sample takes more rows of it");
  // Every device has an equal part of the rows.
  const double part = static_cast<double>(rows.whole) / asked.devices;
  result.work_seconds = whole.seconds;
  result.steps = static_cast<double>(whole.engine.steps);
  if (sample > 1 && part != static_cast<double>(sample)) {
    const int64_t half_rows = sample / 2;
    const SimulatedRun half = run(half_rows);
    const auto stretched = [&](double of_half, double of_sample) {
      return extrapolated(of_half, of_sample, static_cast<double>(half_rows), static_cast<double>(sample),
                          part);
    };
    result.work_seconds = stretched(half.seconds, whole.seconds);
    result.steps = stretched(static_cast<double>(half.engine.steps), result.steps);
  }
  const double stretch = result.work_seconds / whole.seconds;
  const EngineStats& counted = whole.engine;
  const double all = static_cast<double>(rows.whole) / static_cast<double>(sample);
  result.rows = rows.whole;
  result.answers = static_cast<double>(counted.answers) * all;
  result.tokens = static_cast<double>(counted.rows()) * all;
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
  if (const Instance* instance = hardware.cheapest())
    result.usd_per_hour = instance->usd_per_device_hour() * asked.devices;
  result.error = hardware.error;
  return result;
}

BestPacking find_best_packing(EstimateCase asked, const SampledRows& rows) {
  const int32_t given = asked.method.documents;
  BestPacking best;
  const auto consider = [&](int32_t documents, int32_t rows_per_step) {
    asked.method.documents = documents;
    asked.use.rows_per_step = rows_per_step;
    if (!plan_memory(asked.config, *asked.hardware, asked.use).fits()) return;
    const double seconds = estimate(asked, rows).work_seconds;
    // A change must be worth it: packing more than needed only takes memory.
    if (best.rows_per_step > 0 && seconds > best.work_seconds * 0.995) return;
    best = {documents, rows_per_step, seconds};
  };
  const int32_t usual = plan_memory(asked.config, *asked.hardware, asked.use).rows_per_step;
  consider(given, usual);
  const std::string& name = asked.method.name;
  if (name == "ippd" || name == "parallel-prompting" || name == "hpd")
    for (const int32_t documents : {1, 4, 16, 64})
      if (documents != given) consider(documents, usual);
  const int32_t documents = best.documents;
  for (const int32_t step : {usual / 4, usual / 2, usual * 2}) consider(documents, std::max(16, step));
  return best;
}

}  // namespace sheaf

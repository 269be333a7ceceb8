#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/estimate/simulate.h"
#include "core/job.h"

namespace sheaf {

/// What an estimate is made for.
struct EstimateCase {
  std::string model;  ///< its name
  ModelConfig config;
  const Hardware* hardware = nullptr;
  Job::Method method;
  DeviceUse use;
  int32_t devices = 1;  ///< each takes a part of the corpus
};

/// The prompts of the first rows of a corpus, as the case's method packs them.
struct SampledRows {
  int64_t sample = 0;  ///< rows that can be packed
  int64_t whole = 0;   ///< rows that the job has
  std::function<std::vector<Stack>(const EstimateCase&, const MemoryPlan&, int64_t rows)> stacks;
  /// Tokens that every answer is assumed to take; 0: as long as it may be.
  std::function<int32_t(const Job::Method&)> answer_tokens = [](const Job::Method&) { return 0; };
};

/// What a job would take. Counts and seconds are of the whole corpus, on all devices together where they are
/// counts and on each where they are seconds.
struct Estimate {
  MemoryPlan memory;
  double kv_peak = 0;  ///< bytes in the sample
  int64_t rows = 0;
  double answers = 0;
  double tokens = 0;        ///< rows computed
  double tokens_alone = 0;  ///< by one prompt per question
  double steps = 0;         ///< of each device
  double open_seconds = 0;
  double prefill_seconds = 0, decode_seconds = 0, pick_seconds = 0, host_seconds = 0;
  StageSeconds stages;
  double work_seconds = 0;
  double usd_per_hour = 0;  ///< of all devices
  double error = 0;         ///< of the work's seconds, as a share

  double total_seconds() const { return open_seconds + work_seconds; }
  double rows_per_second() const { return static_cast<double>(rows) / work_seconds; }
  double answers_per_second() const { return answers / work_seconds; }
  double usd() const { return total_seconds() / 3600 * usd_per_hour; }
  double usd_per_thousand() const { return usd() / static_cast<double>(rows) * 1000; }
};

Estimate estimate(const EstimateCase& asked, const SampledRows& rows);

/// Documents of a prompt and rows of a step, among some, with which the work is done soonest.
struct BestPacking {
  int32_t documents = 0, rows_per_step = 0;
  double work_seconds = 0;
};
BestPacking find_best_packing(EstimateCase asked, const SampledRows& rows);

}  // namespace sheaf

#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/estimate/simulate.h"

namespace sheaf {

/// Rows of a sample as prompts.
struct PlannedRecords {
  std::vector<Stack> stacks;
  int64_t refused = 0;  ///< records that no prompt holds: a run would put them among its rejects
  int64_t unheld = 0;   ///< refused records that only the device's key/value memory is too small for
  int64_t longest = 0;  ///< positions that the longest of those needs
  std::string reason;   ///< why the first of them is refused
};

/// Rows that stand for a whole corpus.
struct SampledRecords {
  int64_t sample = 0;                      ///< records that are looked at
  int64_t whole = 0;                       ///< records that the job has
  int64_t rejected = 0;                    ///< of the whole corpus beside them: cannot be read
  int64_t most_tokens = int64_t{1} << 20;  ///< to which a small sample is repeated
  /// The first records of the sample, as the case's method packs them; more than it has: repeated as other
  /// ones.
  std::function<PlannedRecords(const EstimateCase&, const MemoryPlan&, int64_t records)> plan;
  /// Tokens that every answer is assumed to take that is not one of a list; 0: as long as it may be.
  std::function<int32_t(const Job::Method&)> answer_tokens = [](const Job::Method&) { return 0; };
  /// How far the sample's cost may be from the whole's, as a share: nine in ten samples are no further off.
  std::function<double(const EstimateCase&)> error = [](const EstimateCase&) { return 0.0; };
};

/// What a job would take. Counts and seconds are of the whole corpus, on all devices together where they are
/// counts and on each where they are seconds.
struct Estimate {
  MemoryPlan memory;
  double kv_peak = 0;    ///< bytes in the sample
  int64_t rows = 0;      ///< records that are answered
  int64_t refused = 0;   ///< records too long for the model or its memory, neither answered nor priced
  int64_t unheld = 0;    ///< refused records that only the device's key/value memory is too small for
  int64_t rejected = 0;  ///< records that cannot be read
  double answers = 0;
  double answer_tokens = 0;   ///< of one answer, the mean
  double findings = 0;        ///< answers to documents alone, which a second round reads
  double finding_tokens = 0;  ///< of one of them, the mean
  double known_answers = 0;   ///< share of the answers that are options, whose lengths are known
  double tokens = 0;          ///< computed
  double tokens_alone = 0;    ///< by one prompt per question
  double steps = 0;           ///< of each device
  double open_seconds = 0;
  double decode_seconds = 0;  ///< of the device, for rows of answers, picks not counted
  double host_seconds = 0;    ///< with the device waiting
  StageSeconds stages;        ///< of the device
  double work_seconds = 0;
  std::optional<Price> price;   ///< of all devices, by the list
  double job_usd_per_hour = 0;  ///< of all devices, by the job; 0: it does not say
  double sampling_error = 0;
  double device_error = 0;  ///< wider where the model is far from those that were measured
  double error = 0;         ///< of the work's seconds, as a share: the device's and the sample's together

  double total_seconds() const { return open_seconds + work_seconds; }
  /// The ends of the error band.
  double least_seconds() const {
    return open_seconds + (error < 1 ? (1 - error) * work_seconds : work_seconds / (1 + error));
  }
  double most_seconds() const { return open_seconds + (1 + error) * work_seconds; }
  double prefill_seconds() const { return stages.total() - stages.pick - decode_seconds; }
  double rows_per_second() const { return static_cast<double>(rows) / work_seconds; }
  double answers_per_second() const { return answers / work_seconds; }
  /// By the list; without a list price the job's; 0: unknown.
  double usd_per_hour() const { return price ? price->usd_per_hour : job_usd_per_hour; }
  double usd() const { return total_seconds() / 3600 * usd_per_hour(); }
  double rented_usd() const {
    return total_seconds() / 3600 * (price ? price->rented_usd_per_hour : job_usd_per_hour);
  }
  double job_usd() const { return total_seconds() / 3600 * job_usd_per_hour; }
  double per_thousand(double usd) const { return usd / static_cast<double>(rows) * 1000; }
};

/// What would make room for a row whose keys and values do not fit.
std::string memory_advice(const EstimateCase& asked);

/// Said where weights do not fit but packed ones would; else nothing.
std::string packed_advice(EstimateCase asked);

Estimate estimate(const EstimateCase& asked, const SampledRecords& records);

}  // namespace sheaf

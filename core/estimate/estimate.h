#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/estimate/simulate.h"
#include "core/plan/planner.h"

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
  double entry_answers = 0;   ///< about the entries of lists, in later rounds
  double entry_tokens = 0;    ///< prefill and decode tokens of these rounds
  double known_answers = 0;   ///< share of the answers that are options, whose lengths are known
  double tokens = 0;          ///< computed
  double tokens_alone = 0;    ///< by one prompt per question
  double steps = 0;           ///< of each device
  double open_seconds = 0;
  double decode_seconds = 0;  ///< of the device, for rows of answers, picks not counted
  double host_seconds = 0;    ///< with the device waiting
  StageSeconds stages;        ///< of the device
  PhaseTable phases;          ///< work of all devices, where the case asks for it
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

/// What to change for a row whose keys and values do not fit.
std::string memory_advice(const EstimateCase& asked);

/// Which of FP8 and packed weights fit where the weights do not; nothing where neither does.
std::string fewer_bits_advice(const EstimateCase& asked);

Estimate estimate(const EstimateCase& asked, const SampledRecords& records);

constexpr int64_t kFewRecords = 16;  ///< a sample of fewer says little

struct PackingRules {
  int32_t window = 512;  ///< records planned together
  TooLong too_long = TooLong::refuse;
};

/// The prompts of the records, by the planner of a run.
PlannedRecords plan_records(std::span<const ReadyRecord> records, const EstimateCase& asked,
                            const MemoryPlan& memory, const PackingRules& rules);

/// So many records: the given ones again and again, each time about other documents.
std::vector<ReadyRecord> repeat_records(std::span<const ReadyRecord> records, int64_t count, int32_t vocab);

/// How far the mean cost of the records may be from that of `whole` records, as a share that nine in ten
/// samples keep to: by how much sixteen runs of them differ in tokens. Of fewer records than that at least
/// what a usual spread leaves open. `answer_tokens`: of an answer that may be of any length.
double sampling_error(std::span<const ReadyRecord> records, int64_t whole, const EstimateCase& asked,
                      const PackingRules& rules, int32_t answer_tokens);

/// What of a case decides how its work is cut.
struct Packing {
  int32_t documents = 0, prompt_tokens = 0, tokens_per_step = 0;
  bool operator==(const Packing&) const = default;
};

/// Settings with which the work is done soonest.
struct BestPacking {
  Packing packing;
  double work_seconds = 0;
  int32_t tried = 0;  ///< settings that were compared
};

/// Looks through a grid of documents a prompt, tokens a prompt and rows a step, as far as memory goes. What
/// was asked stays where nothing is better by half a percent. Fewer are tried, on fewer rows, where answers
/// are long. `as_asked`: seconds of work with what was asked.
BestPacking find_best_packing(const EstimateCase& asked, const SampledRecords& rows, double as_asked);

/// The GPUs of the list that hold the model, for a message about one that does not.
std::string fitting_devices(EstimateCase asked, const HardwareList& list);

/// The line about it: what to change and what that saves.
std::string best_text(const EstimateCase& asked, const Estimate& each, const BestPacking& best);
nlohmann::ordered_json best_json(const BestPacking& best);

// What is assumed of a cluster; each stands beside the figure that it moves.
constexpr double kTaskSeconds = 10;      ///< until a scheduler has started a task
constexpr double kStoreRate = 12.5e9;    ///< bytes per second that an object store gives to all devices
constexpr double kFailureHours = 50000;  ///< of a device between two failures, as in Llama 3's training
constexpr double kAwaySeconds = 600;     ///< until a device that failed is back

/// A job as an array of shards.
struct ShardsEstimate {
  int32_t shards = 0, devices = 0;
  int64_t rounds = 0;        ///< shards that the busiest device takes, one after the other
  double shard_seconds = 0;  ///< work of one shard
  double load_seconds = 0;   ///< to load the model where all devices do at once
  double seconds = 0;        ///< until the last row
  double work_share = 0;     ///< of the paid device time
  double failures = 0;       ///< expected
  double failure_cost = 0;   ///< device seconds that each costs
  double usd = 0;            ///< with all devices paid until the last row
};

/// `records` as estimate() takes them. Refuses more shards than records.
ShardsEstimate estimate_shards(const EstimateCase& asked, const SampledRecords& records, int32_t shards);

std::string shards_text(const ShardsEstimate& all);
nlohmann::ordered_json shards_json(const ShardsEstimate& all);

}  // namespace sheaf

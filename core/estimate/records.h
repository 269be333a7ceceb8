#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/estimate/estimate.h"
#include "core/plan/planner.h"

namespace sheaf {

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

}  // namespace sheaf

#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/estimate/estimate.h"

namespace sheaf {

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

#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/estimate/estimate.h"

namespace sheaf {

/// A job as an array of shards on many devices.
struct FleetAsked {
  int32_t shards = 0;
  /// Hours that a device works between two failures. Llama 3's training (Dubey et al., 2024, table 5): 419 in
  /// 54 days on 16,384 GPUs.
  double failure_hours = 50000;
  double store_rate = 12.5e9;  ///< bytes a second that the object store gives and takes
  double record_bytes = 1000;  ///< of the corpus, for each record
};

/// What one device has to do for a shard.
struct ShardWork {
  double seconds = 0;         ///< of work
  double open_seconds = 0;    ///< to load the model
  double window_seconds = 0;  ///< that a failure costs at most: what was not committed
  double model_bytes = 0;
  double data_bytes = 0;  ///< its records and rows
};

/// How a fleet of some size would do, on average over some simulated runs.
struct FleetRun {
  int32_t devices = 0;
  double seconds = 0;         ///< until the last shard is done
  double work_seconds = 0;    ///< of all devices together, as are those below
  double start_seconds = 0;   ///< tasks started, models loaded
  double failures = 0;        ///< how many
  double failed_seconds = 0;  ///< work done again, models loaded again, devices away
  double idle_seconds = 0;    ///< at the end, with no shard left
  double store_rate = 0;      ///< bytes a second of records and rows

  double efficiency() const { return work_seconds / (devices * seconds); }
};

FleetRun simulate_fleet(const FleetAsked& asked, const ShardWork& shard, int32_t devices);

/// The fleet that was asked for, and fleets of other sizes.
struct Fleet {
  FleetAsked asked;
  ShardWork shard;
  FleetRun run;
  std::vector<FleetRun> curve;  ///< by size
  int32_t stops = 0;            ///< the first size on it that is less than half used; 0: none
};

/// `records` as estimate() takes them.
Fleet estimate_fleet(const EstimateCase& asked, const SampledRecords& records, const FleetAsked& fleet);

std::string fleet_text(const EstimateCase& asked, const Fleet& fleet);
nlohmann::ordered_json fleet_json(const EstimateCase& asked, const Fleet& fleet);

}  // namespace sheaf

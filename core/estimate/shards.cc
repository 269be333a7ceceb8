#include <algorithm>

#include "core/base/error.h"
#include "core/estimate/estimate.h"
#include "core/text/format.h"

namespace sheaf {

ShardsEstimate estimate_shards(const EstimateCase& asked, const SampledRecords& records, int32_t shards) {
  if (shards > records.whole)
    refuse("--shards {} is more than the {} records of the corpus; use fewer", shards, records.whole);
  EstimateCase part = asked;
  part.cost.devices = shards;
  const Estimate one = estimate(part, records);
  ShardsEstimate all{.shards = shards, .devices = asked.cost.devices};
  const double rows = static_cast<double>(one.rows) / shards;
  const double window = std::min(one.work_seconds, one.work_seconds * asked.engine.window / rows);
  const double loading = std::min(all.devices, shards) * one.memory.weights / kStoreRate;
  all.rounds = (shards + all.devices - 1) / all.devices;
  all.shard_seconds = one.work_seconds;
  all.load_seconds = std::max(one.open_seconds, loading);
  all.failure_cost = window + kTaskSeconds + one.open_seconds + kAwaySeconds;
  const auto rounds = static_cast<double>(all.rounds);
  all.seconds =
      rounds * (kTaskSeconds + one.work_seconds) + all.load_seconds + (rounds - 1) * one.open_seconds;
  all.failures = shards * (kTaskSeconds + one.open_seconds + one.work_seconds) / 3600 / kFailureHours;
  all.seconds += all.failures * all.failure_cost / all.devices;
  all.work_share = shards * one.work_seconds / (all.devices * all.seconds);
  const std::optional<Price> price = asked.hardware->price(all.devices);
  all.usd = (price ? price->usd_per_hour : asked.cost.usd_per_hour * all.devices) * all.seconds / 3600;
  return all;
}

std::string shards_text(const ShardsEstimate& all) {
  return fmt::format(
      "shards    {} of {} each on {} devices, at most {} one after the other\n"
      "          {} until the last row, {} with all devices paid until then; {:.1f} % of that is work\n"
      "          assuming {} to start a task, {} to load the model on all devices at once ({:.1f} GB/s from "
      "the "
      "store), and a failure in {} device-hours: {:.2g} expected, each of which costs {} of one device\n",
      number_text(all.shards), time_text(all.shard_seconds), number_text(all.devices),
      number_text(static_cast<double>(all.rounds)), time_text(all.seconds), money_text(all.usd),
      100 * all.work_share, time_text(kTaskSeconds), time_text(all.load_seconds), kStoreRate / 1e9,
      number_text(kFailureHours), all.failures, time_text(all.failure_cost));
}

nlohmann::ordered_json shards_json(const ShardsEstimate& all) {
  return {{"shards", all.shards},
          {"devices", all.devices},
          {"rounds", all.rounds},
          {"shard_seconds", all.shard_seconds},
          {"seconds", all.seconds},
          {"work_share", all.work_share},
          {"usd", all.usd},
          {"failures", all.failures},
          {"assumed",
           {{"task_seconds", kTaskSeconds},
            {"load_seconds", all.load_seconds},
            {"store_bytes_per_second", kStoreRate},
            {"failure_hours", kFailureHours},
            {"failure_device_seconds", all.failure_cost}}}};
}

}  // namespace sheaf

#include "core/estimate/fleet.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <queue>
#include <set>

#include "core/base/error.h"
#include "core/base/random_stream.h"

namespace sheaf {
namespace {

constexpr int kRuns = 20;               // that are simulated
constexpr double kFewFailures = 20;     // in all of them
constexpr double kTaskSeconds = 10;     // until a scheduler has started a task
constexpr double kAwaySeconds = 600;    // until a device that failed is back
constexpr double kShardSpread = 0.05;   // standard deviation of the shards' work, as a share
constexpr double kBytesPerToken = 4;    // of rows
constexpr double kBytesPerAnswer = 24;  // of rows, beside its tokens

double exponential(double mean, uint64_t seed, uint64_t stream, uint64_t index) {
  return -mean * std::log1p(-static_cast<double>(uniform(seed, stream, index)));
}

/// About normal, of mean 0 and deviation 1.
double spread(uint64_t seed, uint64_t stream) {
  double sum = 0;
  for (uint64_t i = 0; i < 12; ++i) sum += static_cast<double>(uniform(seed, stream, i));
  return sum - 6;
}

/// One run of a fleet: whoever is free takes the next shard.
FleetRun run_fleet(const FleetAsked& asked, const ShardWork& shard, int32_t devices, uint64_t seed) {
  FleetRun run{.devices = devices};
  // Devices that load at once share the store: at first all of them, later those whose turn it is.
  const double alone = shard.open_seconds;
  const auto open = [&](double loading) {
    return std::max(alone, loading * shard.model_bytes / asked.store_rate);
  };
  const int32_t busy = std::min(devices, asked.shards);
  const double turn = busy * alone / (alone + kTaskSeconds + shard.seconds);
  // Records and rows may be more than the store can take.
  const double slower = std::max(1.0, busy * shard.data_bytes / shard.seconds / asked.store_rate);

  using Free = std::pair<double, int32_t>;  // when, which
  std::priority_queue<Free, std::vector<Free>, std::greater<>> free;
  for (int32_t i = 0; i < devices; ++i) free.emplace(0, i);
  struct Waiting {
    double since;
    double work;
  };
  std::deque<Waiting> shards;
  for (int32_t i = 0; i < asked.shards; ++i)
    shards.push_back(
        {0, shard.seconds * std::max(0.1, 1 + kShardSpread * spread(seed, static_cast<uint64_t>(i)))});
  std::vector<double> done(static_cast<size_t>(devices), 0);  // when each ended its last shard
  for (uint64_t task = 0; !shards.empty(); ++task) {
    const auto [when, device] = free.top();
    free.pop();
    const Waiting taken = shards.front();
    shards.pop_front();
    const double begin = std::max(when, taken.since);
    const double start = kTaskSeconds + open(when == 0 ? busy : turn);
    const double work = taken.work * slower;
    const double until = exponential(asked.failure_hours * 3600, seed, 1u << 20, task);
    double& end = done[static_cast<size_t>(device)];
    if (until >= start + work) {
      run.start_seconds += start;
      run.work_seconds += work;
      end = begin + start + work;
      free.emplace(end, device);
      continue;
    }
    const double lost = std::min(std::max(0.0, until - start), shard.window_seconds);
    const double kept = std::max(0.0, until - start) - lost;
    ++run.failures;
    run.failed_seconds += std::min(until, start) + lost + kAwaySeconds;
    run.work_seconds += kept;
    end = begin + until;
    free.emplace(end + kAwaySeconds, device);
    shards.push_front({end, taken.work - kept / slower});
  }
  run.seconds = *std::ranges::max_element(done);
  for (const double end : done) run.idle_seconds += run.seconds - end;
  return run;
}

double usd(const EstimateCase& asked, const FleetRun& run) {
  const std::optional<Price> price = asked.hardware->price(run.devices);
  const double per_hour = price ? price->usd_per_hour : asked.cost.usd_per_hour * run.devices;
  return per_hour * run.seconds / 3600;
}

}  // namespace

FleetRun simulate_fleet(const FleetAsked& asked, const ShardWork& shard, int32_t devices) {
  FleetRun mean{.devices = devices};
  for (uint64_t seed = 0; seed < kRuns; ++seed) {
    const FleetRun run = run_fleet(asked, shard, devices, seed);
    for (double FleetRun::*each : {&FleetRun::seconds, &FleetRun::work_seconds, &FleetRun::start_seconds,
                                   &FleetRun::failures, &FleetRun::failed_seconds, &FleetRun::idle_seconds})
      mean.*each += run.*each / kRuns;
  }
  // What is too rare to be simulated.
  if (mean.failures * kRuns < kFewFailures) {
    const double start = kTaskSeconds + shard.open_seconds;
    mean.failures = (mean.work_seconds + mean.start_seconds) / 3600 / asked.failure_hours;
    mean.failed_seconds = mean.failures * (start + shard.window_seconds + kAwaySeconds);
  }
  mean.store_rate = asked.shards * shard.data_bytes / mean.seconds;
  return mean;
}

Fleet estimate_fleet(const EstimateCase& asked, const SampledRecords& records, const FleetAsked& wanted) {
  if (wanted.shards > records.whole)
    refuse("--shards {} is more than the {} records of the corpus; use fewer", wanted.shards, records.whole);
  EstimateCase part = asked;
  part.cost.devices = wanted.shards;
  const Estimate one = estimate(part, records);
  const double rows = static_cast<double>(one.rows) / wanted.shards;
  Fleet fleet;
  fleet.asked = wanted;
  fleet.shard = {one.work_seconds, one.open_seconds,
                 std::min(one.work_seconds, one.work_seconds * asked.engine.window / rows),
                 one.memory.weights,
                 rows * wanted.record_bytes +
                     one.answers / wanted.shards * (one.answer_tokens * kBytesPerToken + kBytesPerAnswer)};
  fleet.run = simulate_fleet(wanted, fleet.shard, asked.cost.devices);
  std::set<int32_t> sizes{asked.cost.devices};
  for (int32_t size = 1; size <= std::max(8 * wanted.shards, asked.cost.devices); size *= 4)
    sizes.insert(size);
  for (const int32_t size : sizes) {
    fleet.curve.push_back(size == asked.cost.devices ? fleet.run : simulate_fleet(wanted, fleet.shard, size));
    if (fleet.stops == 0 && fleet.curve.back().efficiency() < 0.5) fleet.stops = size;
  }
  return fleet;
}

nlohmann::ordered_json fleet_json(const EstimateCase& asked, const Fleet& fleet) {
  const auto run_json = [&](const FleetRun& run) {
    return nlohmann::ordered_json{{"devices", run.devices},
                                  {"seconds", run.seconds},
                                  {"usd", usd(asked, run)},
                                  {"efficiency", run.efficiency()},
                                  {"work_seconds", run.work_seconds},
                                  {"start_seconds", run.start_seconds},
                                  {"idle_seconds", run.idle_seconds},
                                  {"failures", run.failures},
                                  {"failed_seconds", run.failed_seconds},
                                  {"store_bytes_per_second", run.store_rate}};
  };
  nlohmann::ordered_json json = run_json(fleet.run);
  json["shards"] = fleet.asked.shards;
  json["shard"] = {{"seconds", fleet.shard.seconds},
                   {"open_seconds", fleet.shard.open_seconds},
                   {"window_seconds", fleet.shard.window_seconds},
                   {"model_bytes", fleet.shard.model_bytes},
                   {"data_bytes", fleet.shard.data_bytes}};
  json["failure_hours"] = fleet.asked.failure_hours;
  json["store_rate"] = fleet.asked.store_rate;
  for (const FleetRun& run : fleet.curve) json["curve"].push_back(run_json(run));
  json["stops"] = fleet.stops > 0 ? nlohmann::ordered_json(fleet.stops) : nlohmann::ordered_json();
  return json;
}

}  // namespace sheaf

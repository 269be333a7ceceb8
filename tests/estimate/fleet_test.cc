// A job as an array of shards on many devices, simulated.
#include "core/estimate/fleet.h"

#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::run_sheaf;
using test::Scratch;

constexpr ShardWork kShard{
    .seconds = 600, .open_seconds = 20, .window_seconds = 5, .model_bytes = 16e9, .data_bytes = 5e8};

TEST(Fleet, OneDeviceDoesAllShards) {
  const FleetRun run = simulate_fleet({.shards = 100, .failure_hours = 1e9}, kShard, 1);
  EXPECT_NEAR(run.seconds, 100 * (10 + 20 + 600), 1000);
  EXPECT_NEAR(run.failures, 63000 / 3600.0 / 1e9, 1e-9);
  EXPECT_EQ(run.idle_seconds, 0);
  EXPECT_NEAR(run.start_seconds, 100 * 30, 1);
  EXPECT_NEAR(run.efficiency(), 600 / 630.0, 0.001);
  EXPECT_NEAR(run.store_rate, 100 * 5e8 / run.seconds, 1);
}

TEST(Fleet, TimeOfAllDevicesIsWorkStartsFailuresAndIdleness) {
  for (const int32_t devices : {1, 7, 64, 200}) {
    const FleetRun run = simulate_fleet({.shards = 100, .failure_hours = 20}, kShard, devices);
    EXPECT_GT(run.failures, 0.1) << devices;
    EXPECT_NEAR(run.work_seconds, 100 * 600, 1500) << devices;
    // A device that is away at the very end counts as both.
    EXPECT_NEAR((run.work_seconds + run.start_seconds + run.failed_seconds + run.idle_seconds) /
                    (devices * run.seconds),
                1, 0.1)
        << devices;
  }
}

TEST(Fleet, MoreDevicesHelpUntilThereAreNoShardsLeft) {
  const FleetAsked asked{.shards = 100};
  const double ten = simulate_fleet(asked, kShard, 10).seconds;
  EXPECT_NEAR(simulate_fleet(asked, kShard, 1).seconds / ten, 10, 0.5);
  const FleetRun all = simulate_fleet(asked, kShard, 100), more = simulate_fleet(asked, kShard, 400);
  EXPECT_GT(all.seconds, 600);
  EXPECT_GT(more.seconds, 0.95 * all.seconds);
  EXPECT_LT(more.efficiency(), 0.25);
}

TEST(Fleet, FailuresAndASlowStoreCost) {
  const FleetRun safe = simulate_fleet({.shards = 200, .failure_hours = 1e9}, kShard, 20);
  const FleetRun spot = simulate_fleet({.shards = 200, .failure_hours = 10}, kShard, 20);
  EXPECT_NEAR(spot.failures, 200 * 630 / 36000.0, 1.5);
  EXPECT_GT(spot.seconds, safe.seconds);
  EXPECT_GT(spot.failed_seconds, spot.failures * 600);
  // Models through a store that is too slow for all at once; and one that records are too much for.
  EXPECT_GT(
      simulate_fleet({.shards = 200, .failure_hours = 1e9, .store_rate = 1e9}, kShard, 20).start_seconds,
      1.2 * safe.start_seconds);
  EXPECT_GT(simulate_fleet({.shards = 200, .failure_hours = 1e9, .store_rate = 8e6}, kShard, 20).seconds,
            1.9 * safe.seconds);
}

TEST(Fleet, TheCommandShowsIt) {
  const Scratch scratch;
  const std::string command =
      "estimate --model qwen3-1.7b --document-tokens 120 --questions 8 --instruction-tokens 60 --records "
      "50000000 "
      "--method hpd --devices 64 --shards 1000 ";
  const auto shown = run_sheaf(scratch, command + "--hardware h200");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  for (const char* word :
       {"\nfleet     64 devices, 1,000 shards of ", "\nfailures  ", "\nstore     ", "\nscaling   "})
    EXPECT_NE(shown.out.find(word), std::string::npos) << word << shown.out;
  const json fleet = json::parse(run_sheaf(scratch, command + "--hardware h200 --json").out).at("fleet");
  EXPECT_EQ(fleet["shards"], 1000);
  EXPECT_GT(fleet["curve"].size(), 5u);
  EXPECT_GT(fleet["usd"], 0);
  const auto many = run_sheaf(scratch, command + "--hardware h200,h100");
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_NE(many.err.find("--shards 1000 is for one device and no sweep"), std::string::npos) << many.err;
  EXPECT_EQ(run_sheaf(scratch, command + "--hardware h200 --records 999").exit_code, 2);
}

}  // namespace
}  // namespace sheaf

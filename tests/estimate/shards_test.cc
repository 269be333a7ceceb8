// A job as an array of shards on many devices.

#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::run_sheaf;

TEST(EstimatedShards, TakeRoundsOfDevicesPlusAssumedStarts) {
  const TempFolder scratch;
  const std::string command =
      "estimate --model qwen3-1.7b --document-tokens 120 --questions 8 --instruction-tokens 60 --records "
      "50000000 "
      "--method hpd --shards 1000 ";
  const auto shown = run_sheaf(scratch, command + "--devices 64 --hardware h200");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_NE(shown.out.find("\nshards    1,000 of "), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find(" on 64 devices, at most 16 one after the other\n"), std::string::npos)
      << shown.out;
  EXPECT_NE(shown.out.find("assuming 10.0 s to start a task, "), std::string::npos) << shown.out;
  const auto shards = [&](int devices) {
    const std::string again = command + "--hardware h200 --json --devices " + std::to_string(devices);
    return json::parse(run_sheaf(scratch, again).out).at("shards");
  };
  const json all = shards(64);
  const double work = all["shard_seconds"], load = all["assumed"]["load_seconds"];
  EXPECT_EQ(all["rounds"], 16);
  EXPECT_GT(all["seconds"], 16 * (work + 10) + load);
  EXPECT_LT(all["seconds"], 16 * (work + 10 + load) + 1);
  EXPECT_NEAR(all["work_share"].get<double>(), 1000 * work / (64 * all["seconds"].get<double>()), 1e-9);
  EXPECT_GT(all["usd"], 0);
  const json one = shards(1), most = shards(1000), more = shards(4000);
  EXPECT_EQ(one["rounds"], 1000);
  EXPECT_EQ(most["rounds"], 1);
  EXPECT_GT(more["seconds"], 0.9 * most["seconds"].get<double>()) << "there are no shards left";
  EXPECT_LT(more["work_share"], 0.3);
  EXPECT_GT(most["assumed"]["load_seconds"], one["assumed"]["load_seconds"]) << "all load at once";
  const auto many = run_sheaf(scratch, command + "--hardware h200,h100");
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_NE(many.err.find("--shards 1000 works only with one device"), std::string::npos) << many.err;
  EXPECT_EQ(run_sheaf(scratch, command + "--hardware h200 --records 999").exit_code, 2);
}

}  // namespace
}  // namespace sheaf

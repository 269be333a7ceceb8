// Two engines on one GPU, each with its own weights, stream and thread: the bytes are those of one engine.
#include <gtest/gtest.h>

#include "cuda/base/devices.h"
#include "tests/app/program.h"
#include "tests/cuda/need_gpu.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::run_sheaf;

TEST(SeveralEngines, GiveTheRowsOfOneEngine) {
  NEED_HOPPER();
  NEED_MODEL();
  const TempFolder scratch;
  for (const char* job : {"configs/demo.yaml", "configs/ask.yaml"}) {
    const auto run = [&](const std::string& device) {
      const auto ran =
          run_sheaf(scratch, "run " + std::string(job) +
                                 " --quiet --restart --reproducible --set engine.window=4 --device " +
                                 device + " --set output.path=" + scratch.path(device));
      EXPECT_EQ(ran.exit_code, 0) << ran.err;
      return read_text(scratch.path(device) + "/rows-00000.jsonl");
    };
    const std::string one = run("cuda:0");
    ASSERT_FALSE(one.empty());
    for (const std::string device : {"cuda:0,0", "cuda:0,0,0", "cuda:all"})
      EXPECT_EQ(run(device), one) << device;
    const json report = json::parse(read_text(scratch.path("cuda:0,0,0") + "/report.json"));
    ASSERT_EQ(report["engines"].size(), 3u);
    int64_t answers = 0;  // which engine is how quick is not said
    for (const json& engine : report["engines"]) answers += engine["answers"].get<int64_t>();
    EXPECT_EQ(answers, report["answers"]) << report["engines"].dump(2);
    EXPECT_EQ(report["cost"]["devices"], 1) << "one GPU is paid for once";
  }
}

TEST(SeveralEngines, BackendsOfOneProcessRunOnAnyThread) {
  NEED_GPU();
  NEED_MODEL();
  const TempFolder scratch;
  // Without reproducible mode answers may differ; they are all there.
  const auto ran = run_sheaf(scratch,
                             "run configs/demo.yaml --json --device cuda:0,0 --set engine.window=4 "
                             "--set output.path=" +
                                 scratch.path("out"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["rows"], 40);
  const auto missing = run_sheaf(
      scratch, "run configs/demo.yaml --device cuda:0,99 --set output.path=" + scratch.path("none"));
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("engine.device: cuda:99 does not exist"), std::string::npos) << missing.err;
}

}  // namespace
}  // namespace sheaf

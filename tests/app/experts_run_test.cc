// A whole run of a mixture of experts.
#include <cstdlib>
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::run_sheaf;

TEST(RunOfExperts, ReportsHowTokensWereSharedOutAndTheSameAnswersHoweverPacked) {
  const TempFolder scratch;
  const std::string model = scratch.path("experts");
  ASSERT_EQ(
      std::system(("python3 " SHEAF_SOURCE_DIR "/tools/make_random_model.py --shape tiny-experts --out " +
                   model + " > /dev/null")
                      .c_str()),
      0);
  std::string lines;
  for (int i = 0; i < 12; ++i)
    lines += json{{"n", i}, {"c", "Box " + std::to_string(i * i)}, {"q", {"What?", "Which?"}}}.dump() + "\n";
  const std::string job = scratch.write(
      "job.yaml", "model: {path: " + model + "}\ninput: {path: " + scratch.write("rows.jsonl", lines) +
                      ", id: n, context: c, questions: q}\ntask: {kind: ask}\n"
                      "method: {name: ippd, max_value_tokens: 4}\n"
                      "engine: {device: cpu, threads: 2, tokens_per_step: 64}\noutput: {path: " +
                      scratch.path("out") + "}\n");
  const auto ran = run_sheaf(scratch, "run " + job);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json report = json::parse(read_text(scratch.path("out/report.json")));
  const json& experts = report.at("experts");
  EXPECT_EQ(experts.at("count"), 8);
  EXPECT_EQ(experts.at("passes"), 2 * report.at("steps").get<int64_t>()) << "two layers have experts";
  EXPECT_EQ(experts.at("tokens"), 2 * 2 * report.at("tokens").at("computed").get<int64_t>());
  EXPECT_GE(experts.at("busiest_over_mean"), 1.0);
  EXPECT_EQ(report.at("per_step").at("expert_tokens").at("count"), 8 * experts.at("passes").get<int64_t>());
  EXPECT_NE(run_sheaf(scratch, "report " + scratch.path("out")).out.find("  experts  "), std::string::npos);
  const auto verified = run_sheaf(scratch, "verify " + job);
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
}

}  // namespace
}  // namespace sheaf

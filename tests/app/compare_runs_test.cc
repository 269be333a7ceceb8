// tools/compare_runs: one job, two settings, answers compared row by row.
#include "tests/app/compare_runs.h"

#include <gtest/gtest.h>

#include "tests/skip.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;

TEST(CompareRuns, EqualAnswersAreCountedAndTimed) {
  NEED_MODEL();
  const TempFolder scratch;
  const Ran ran =
      test::compare_runs(scratch,
                         "configs/ask.yaml --limit 1 --set method.max_value_tokens=6 --set engine.device=cpu "
                         "--a method.name=standard --b method.name=ippd --at-least 1");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json result = json::parse(ran.out);
  EXPECT_EQ(result["answers"], 5);
  EXPECT_EQ(result["equal"], 5);
  EXPECT_EQ(result["share"], 1.0);
  EXPECT_GT(result["seconds_a"].get<double>(), 0);
  EXPECT_GT(result["seconds_b"].get<double>(), 0);
  EXPECT_EQ(ran.err, "");
}

TEST(CompareRuns, DifferencesAreShownAndTooManyFail) {
  NEED_MODEL();
  const TempFolder scratch;
  const std::string job = "configs/demo.yaml --limit 1 --show 1 --text --set engine.device=cpu";
  const std::string sampled = " --set method.max_value_tokens=5 --set method.temperature=2";
  const Ran ran = test::compare_runs(scratch, job + sampled + " --b method.seed=5 --at-least 0.9");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  const json result = json::parse(ran.out);
  EXPECT_EQ(result["answers"], 8);
  EXPECT_LT(result["share"].get<double>(), 0.9);
  EXPECT_NE(ran.err.find("BC-1469"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("more"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("less than --at-least 0.9"), std::string::npos) << ran.err;
  const Ran content = test::compare_runs(scratch, job + sampled + " --b method.seed=5");
  EXPECT_EQ(content.exit_code, 0) << "nothing was wanted";
}

TEST(CompareRuns, ARowThatOneRunRejectsIsADifference) {
  NEED_MODEL();
  const TempFolder scratch;
  std::string words;
  for (int i = 0; i < 600; ++i) words += "word ";
  const std::string corpus = scratch.write(
      "corpus.jsonl", json{{"context", "Tea is hot."}, {"question", "Is tea hot?"}}.dump() + "\n" +
                          json{{"context", words}, {"question", "Is it hot?"}}.dump() + "\n");
  const std::string job = scratch.write(
      "job.yaml", "model: {path: " SHEAF_SOURCE_DIR "/build/models/smollm2.gguf}\ninput: {path: " + corpus +
                      ", context: context, question: question}\ntask: {kind: ask}\n"
                      "method: {name: standard, max_value_tokens: 3}\noutput: {path: " +
                      scratch.path("out") + "}\n");
  const Ran ran = test::compare_runs(scratch, job + " --set engine.device=cpu --b engine.kv_memory_gb=0.01");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json result = json::parse(ran.out);
  EXPECT_EQ(result["answers"], 2);
  EXPECT_EQ(result["equal"], 1);
  EXPECT_NE(ran.err.find("none"), std::string::npos) << ran.err;
}

TEST(CompareRuns, ARunThatFailsIsNamed) {
  NEED_MODEL();
  const TempFolder scratch;
  const Ran ran = test::compare_runs(scratch, "configs/ask.yaml --limit 1 --a engine.device=cuda:99");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("with engine.device=cuda:99"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.out, "");
}

}  // namespace
}  // namespace sheaf

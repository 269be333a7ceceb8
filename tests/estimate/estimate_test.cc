#include "core/estimate/estimate.h"

#include <gtest/gtest.h>

#include "app/estimate_sweep.h"
#include "core/error.h"
#include "core/estimate/byte_tokenizer.h"
#include "tests/app/program.h"
#include "tests/estimate/listed_hardware.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::listed_hardware;
using test::run_sheaf;

EstimateAsked made_up(int64_t rows) {
  EstimateAsked asked;
  asked.model = "qwen3-1.7b";
  asked.statistics = {40, 200, 6, 12, 4};
  asked.rows = rows;
  return asked;
}

EstimateCase case_of(const EstimateInputs& inputs, const char* hardware) {
  EstimateCase each{inputs.model_name(), inputs.config(), &listed_hardware().find(hardware), {}, {}, 1};
  each.method.name = "ippd";
  return each;
}

TEST(Estimate, ASampleIsStretchedToTheWholeCorpus) {
  const EstimateInputs part(made_up(4000));
  EstimateAsked all = made_up(4000);
  all.sample = 4000;
  const EstimateInputs whole(all);
  EXPECT_EQ(part.rows().sample, 512);
  EXPECT_EQ(whole.rows().sample, 4000);
  const Estimate stretched = estimate(case_of(part, "h200"), part.rows());
  const Estimate counted = estimate(case_of(whole, "h200"), whole.rows());
  EXPECT_NEAR(stretched.work_seconds / counted.work_seconds, 1, 0.05);
  EXPECT_NEAR(stretched.tokens / counted.tokens, 1, 0.05);
  EXPECT_NEAR(stretched.steps / counted.steps, 1, 0.1);
}

TEST(Estimate, StagesAddUpAndDevicesShareTheWork) {
  const EstimateInputs inputs(made_up(20000));
  EstimateCase each = case_of(inputs, "h200");
  const Estimate one = estimate(each, inputs.rows());
  EXPECT_NEAR(one.prefill_seconds + one.decode_seconds + one.pick_seconds + one.host_seconds,
              one.work_seconds, 0.01 * one.work_seconds);
  EXPECT_NEAR(one.usd(), one.total_seconds() / 3600 * one.usd_per_hour, 1e-9);
  each.devices = 4;
  const Estimate four = estimate(each, inputs.rows());
  EXPECT_NEAR(one.work_seconds / four.work_seconds, 4, 0.2);
  EXPECT_EQ(four.rows, one.rows);
  EXPECT_NEAR(four.usd_per_hour, 4 * one.usd_per_hour, 1e-9);
}

TEST(Estimate, MethodsAreOrderedAsTheyShare) {
  const EstimateInputs inputs(made_up(512));
  EstimateCase each = case_of(inputs, "h200");
  std::vector<double> seconds;
  for (const char* method : {"ippd", "prefix", "standard"}) {
    each.method.name = method;
    seconds.push_back(estimate(each, inputs.rows()).work_seconds);
  }
  EXPECT_LE(seconds[0], 1.05 * seconds[1]);
  EXPECT_GT(seconds[2], 2 * seconds[1]);
}

TEST(Estimate, RefusesAModelThatDoesNotFit) {
  EstimateAsked asked = made_up(100);
  asked.model = "qwen3-32b";
  const EstimateInputs inputs(asked);
  EXPECT_THROW(estimate(case_of(inputs, "l40s"), inputs.rows()), Error);
  EXPECT_NO_THROW(estimate(case_of(inputs, "h100"), inputs.rows()));
}

TEST(Estimate, TheBestPackingIsNoWorseThanWhatWasAsked) {
  const EstimateInputs inputs(made_up(512));
  EstimateCase each = case_of(inputs, "l40s");
  each.use.rows_per_step = 64;
  const BestPacking best = find_best_packing(each, inputs.rows());
  EXPECT_GT(best.rows_per_step, 64);
  EXPECT_LT(best.work_seconds, estimate(each, inputs.rows()).work_seconds);
}

TEST(Sweep, MarksTheCheapestThatIsInTime) {
  const EstimateInputs inputs(made_up(200000));
  const EstimateCase base = case_of(inputs, "h200");
  const std::vector<SweepAxis> axes = {parse_sweep("hardware=l4,l40s,h100"),
                                       parse_sweep("method=ippd,standard")};
  const auto marked = [&](double within) {
    std::vector<std::string> found;
    for (const SweepRow& row : sweep(base, inputs.rows(), listed_hardware(), axes, within))
      if (row.mark.starts_with("cheapest")) found.push_back(row.values[0] + " " + row.values[1]);
    return found;
  };
  const auto any = marked(0);
  ASSERT_EQ(any.size(), 1u);
  double seconds = 0;
  for (const SweepRow& row : sweep(base, inputs.rows(), listed_hardware(), axes, 0)) {
    ASSERT_TRUE(row.estimate) << row.problem;
    if (row.values[0] + " " + row.values[1] == any[0]) seconds = row.estimate->total_seconds();
  }
  const auto faster = marked(0.9 * seconds);
  ASSERT_EQ(faster.size(), 1u);
  EXPECT_NE(faster[0], any[0]);
  EXPECT_TRUE(marked(0.001).empty());
}

TEST(ByteTokenizer, CountsBytesAndKeepsEqualTextEqual) {
  const ByteTokenizer tokenizer(0.25, 1000);
  Tokens a, b, none;
  tokenizer.encode(std::string(40, 'x') + "end", false, a);
  tokenizer.encode(std::string(40, 'x') + "end", false, b);
  tokenizer.encode("", false, none);
  EXPECT_EQ(a.size(), 11u);
  EXPECT_EQ(a, b);
  EXPECT_TRUE(none.empty());
}

TEST(EstimateCommand, NeedsNeitherModelNorGpu) {
  const test::Scratch scratch;
  const std::string corpus =
      scratch.write("c.jsonl", R"({"text":"A red cup of tea.","q":["Which colour?","What for?"]})"
                               "\n"
                               R"({"text":"A blue plate for bread.","q":["Which colour?"]})"
                               "\n");
  const std::string job = scratch.write("job.yaml", "model: {path: qwen3-8b}\ninput: {path: " + corpus +
                                                        ", context: text, questions: q}\ntask: {kind: ask}\n"
                                                        "method: {name: ippd}\noutput: {path: out/none}\n");
  const auto ran = run_sheaf(scratch, "estimate " + job + " --hardware h200 --rows 1000 --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json result = json::parse(ran.out);
  EXPECT_TRUE(result["model"] == "qwen3-8b");
  EXPECT_EQ(result["rows"], 1000);
  EXPECT_NEAR(result["answers"].get<double>(), 1500, 1);
  EXPECT_GT(result["seconds"]["work"].get<double>(), 0);
  EXPECT_NE(result["notes"].dump().find("guessed from bytes"), std::string::npos);
}

TEST(EstimateCommand, SweepsWriteATableAndAPage) {
  const test::Scratch scratch;
  const std::string page = scratch.file("page.html");
  const auto ran = run_sheaf(scratch,
                             "estimate --model qwen3-8b --document-tokens 100 --rows 50 --sweep "
                             "hardware=l4,h200 --sweep model=qwen3-8b,qwen3-32b --within 1h --html " +
                                 page);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("cheapest in time"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("sheaf runs a model on one device"), std::string::npos);  // 32B on an L4
  const std::string html = test::read_text(page);
  EXPECT_NE(html.find("<table>"), std::string::npos);
  EXPECT_NE(html.find("cheapest in time"), std::string::npos);
}

TEST(EstimateCommand, RefusesWithAReason) {
  const test::Scratch scratch;
  const auto says = [&](const std::string& arguments, const std::string& text) {
    const auto ran = run_sheaf(scratch, "estimate " + arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    EXPECT_NE(ran.err.find(text), std::string::npos) << ran.err;
  };
  says("", "name a job");
  says("--model qwen3-8b", "--document-tokens");
  says("--model qwen3-9b --document-tokens 10", "qwen3-8b");
  says("--model qwen3-8b --document-tokens 10 --hardware h300", "h200");
  says("--model qwen3-32b --document-tokens 10 --hardware l4", "h100");
  says("--model qwen3-8b --document-tokens 10 --sweep colour=red", "--sweep");
}

TEST(Calibrate, RefusesBeforeItMeasures) {
  const test::Scratch scratch;
  const std::string file = scratch.file("device.json");
  const auto nothing = run_sheaf(scratch, "bench");
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_NE(nothing.err.find("--calibrate"), std::string::npos) << nothing.err;
  const auto unknown = run_sheaf(scratch, "bench --device cpu --shapes qwen3-9b --calibrate " + file);
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("qwen3-8b"), std::string::npos) << unknown.err;
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace sheaf

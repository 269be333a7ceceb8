#include "core/estimate/estimate.h"

#include <cmath>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/estimate/sweep.h"
#include "io/estimate/inputs.h"
#include "io/files/estimate_section.h"
#include "tests/estimate/listed_hardware.h"

namespace sheaf {
namespace {

using test::listed_hardware;

EstimateAsked made_up(int64_t rows) {
  EstimateAsked asked;
  asked.model = "qwen3-1.7b";
  asked.statistics = {40, 200, 6, 12, 4};
  asked.records = rows;
  return asked;
}

EstimateCase case_of(const EstimateInputs& inputs, const char* hardware) {
  EstimateCase each{inputs.model_name(), inputs.config(), &listed_hardware().find(hardware)};
  each.method.name = "ippd";
  return each;
}

TEST(Estimate, ASampleIsStretchedToTheWholeCorpus) {
  const EstimateInputs part(made_up(4000));
  EstimateAsked all = made_up(4000);
  all.sample = 4000;
  const EstimateInputs whole(all);
  EXPECT_EQ(part.records().sample, 512);
  EXPECT_EQ(whole.records().sample, 4000);
  const Estimate stretched = estimate(case_of(part, "h200"), part.records());
  const Estimate counted = estimate(case_of(whole, "h200"), whole.records());
  EXPECT_NEAR(stretched.work_seconds / counted.work_seconds, 1, 0.05);
  EXPECT_NEAR(stretched.tokens / counted.tokens, 1, 0.05);
  EXPECT_NEAR(stretched.steps / counted.steps, 1, 0.1);
}

/// Few enough rows that none is stretched.
Estimate with_lengths(double document, double answer) {
  EstimateAsked asked = made_up(400);
  asked.statistics.document = document;
  asked.statistics.answer = answer;
  const EstimateInputs inputs(asked);
  return estimate(case_of(inputs, "h200"), inputs.records());
}

TEST(Estimate, EveryStageScalesWithItsOwnLengths) {
  const Estimate base = with_lengths(200, 4), documents = with_lengths(600, 4),
                 answers = with_lengths(200, 12);
  EXPECT_GT(documents.prefill_seconds(), 2 * base.prefill_seconds());
  EXPECT_NEAR(documents.decode_seconds / base.decode_seconds, 1, 0.3);
  EXPECT_NEAR(documents.stages.pick / base.stages.pick, 1, 0.3);
  EXPECT_NEAR(answers.prefill_seconds() / base.prefill_seconds(), 1, 0.1);
  EXPECT_GT(answers.decode_seconds, 2 * base.decode_seconds);
  EXPECT_GT(answers.stages.pick, 2 * base.stages.pick);
  const Estimate one_token = with_lengths(200, 1);
  EXPECT_EQ(one_token.decode_seconds, 0) << "the first token of an answer comes from its question";
  EXPECT_GT(one_token.stages.pick, 0);
  for (const Estimate& each : {base, documents, answers, one_token}) {
    EXPECT_GT(each.host_seconds, 0);
    EXPECT_LT(each.host_seconds, each.stages.pick);
    EXPECT_NEAR(each.prefill_seconds() + each.decode_seconds + each.stages.pick + each.host_seconds,
                each.work_seconds, 0.001 * each.work_seconds);
  }
}

TEST(Estimate, DevicesShareTheWork) {
  const EstimateInputs inputs(made_up(20000));
  EstimateCase each = case_of(inputs, "h200");
  const Estimate one = estimate(each, inputs.records());
  each.cost.devices = 4;
  const Estimate four = estimate(each, inputs.records());
  EXPECT_NEAR(one.work_seconds / four.work_seconds, 4, 0.2);
  EXPECT_EQ(four.rows, one.rows);
  EXPECT_NEAR(four.usd_per_hour(), 4 * one.usd_per_hour(), 1e-9);
}

TEST(Estimate, MoneyIsTheWholeTimeAtItsPrice) {
  Estimate each;
  each.open_seconds = 600;
  each.work_seconds = 6600;
  each.rows = 500;
  each.job_usd_per_hour = 5;
  EXPECT_DOUBLE_EQ(each.usd(), 10) << "no list price";
  EXPECT_DOUBLE_EQ(each.rented_usd(), 10) << "no list price";
  each.price = Price{nullptr, 1, 3, 7};
  EXPECT_DOUBLE_EQ(each.usd(), 6);
  EXPECT_DOUBLE_EQ(each.rented_usd(), 14);
  EXPECT_DOUBLE_EQ(each.job_usd(), 10);
  EXPECT_DOUBLE_EQ(each.per_thousand(6), 12);
}

TEST(Estimate, MethodsAreOrderedAsTheyShare) {
  const EstimateInputs inputs(made_up(512));
  EstimateCase each = case_of(inputs, "h200");
  std::vector<double> seconds;
  for (const char* method : {"ippd", "prefix", "standard"}) {
    each.method.name = method;
    seconds.push_back(estimate(each, inputs.records()).work_seconds);
  }
  EXPECT_LE(seconds[0], 1.05 * seconds[1]);
  EXPECT_GT(seconds[2], 2 * seconds[1]);
}

TEST(Estimate, RefusesAModelThatDoesNotFit) {
  EstimateAsked asked = made_up(100);
  asked.model = "qwen3-32b";
  const EstimateInputs inputs(asked);
  EXPECT_THROW(estimate(case_of(inputs, "l40s"), inputs.records()), Error);
  EXPECT_NO_THROW(estimate(case_of(inputs, "h100"), inputs.records()));
}

TEST(Estimate, TheBestPackingIsFoundFarFromWhatWasAsked) {
  const EstimateInputs inputs(made_up(2000));
  EstimateCase each = case_of(inputs, "l40s");
  each.engine.tokens_per_step = 64;
  each.engine.prompts = 2;  // two prompts at once: only large ones fill the device
  each.method.documents = 1;
  each.method.prompt_tokens = 512;
  const BestPacking best =
      find_best_packing(each, inputs.records(), estimate(each, inputs.records()).work_seconds);
  EXPECT_GT(best.packing.tokens_per_step, 64);
  EXPECT_NE(best.packing.documents, 1);
  EXPECT_GT(best.packing.prompt_tokens, 512);
  EXPECT_GT(best.tried, 20);
  EXPECT_LT(best.work_seconds, 0.5 * estimate(each, inputs.records()).work_seconds);
}

TEST(Estimate, TheBestPackingFitsTheMemory) {
  EstimateAsked asked = made_up(300);
  asked.model = "qwen3-8b";
  const EstimateInputs inputs(asked);
  EstimateCase each = case_of(inputs, "l4");
  each.engine.tokens_per_step = 256;
  const BestPacking best =
      find_best_packing(each, inputs.records(), estimate(each, inputs.records()).work_seconds);
  EXPECT_GT(best.packing.tokens_per_step, 256);
  each.engine.tokens_per_step = best.packing.tokens_per_step;
  const MemoryPlan memory = plan_memory(each);
  EXPECT_LT(memory.weights + memory.activations + memory.pool, memory.usable);
}

TEST(Estimate, TheBestPackingIsSoughtOverFewerSettingsWhereAnswersAreLong) {
  EstimateAsked asked = made_up(300);
  const EstimateInputs brief(asked);
  asked.statistics.answer = 1500;
  asked.sample = 32;
  const EstimateInputs lengthy(asked);
  const auto tried = [](const EstimateInputs& inputs) {
    const EstimateCase each = case_of(inputs, "h200");
    return find_best_packing(each, inputs.records(), estimate(each, inputs.records()).work_seconds).tried;
  };
  EXPECT_GT(tried(brief), 20);
  EXPECT_LE(tried(lengthy), 10);
}

/// A thousand rows of which some are longer than the model's 8192 positions.
Estimate with_long_rows(double document, int64_t sample) {
  EstimateAsked asked = made_up(1000);
  asked.model = "smollm2-135m";
  asked.statistics.document = document;
  asked.sample = sample;
  const EstimateInputs inputs(asked);
  return estimate(case_of(inputs, "h200"), inputs.records());
}

double seconds_per_token(const Estimate& each) {
  return each.work_seconds / each.tokens;
}

TEST(Estimate, RowsTooLongAreCountedApartAndNotPriced) {
  const Estimate counted = with_long_rows(6000, 1000), some = with_long_rows(6000, 512);
  EXPECT_GT(counted.refused, 100);
  EXPECT_EQ(counted.rows + counted.refused, 1000);
  EXPECT_EQ(counted.answers, 6.0 * static_cast<double>(counted.rows));
  EXPECT_EQ(some.rows + some.refused, 1000);
  EXPECT_NEAR(static_cast<double>(some.rows) / static_cast<double>(counted.rows), 1, 0.05);
  EXPECT_NEAR(some.answers, 6.0 * static_cast<double>(some.rows), 6);
  // The whole work follows from the rows that are answered, however they lie in the sample.
  EXPECT_NEAR(seconds_per_token(some) / seconds_per_token(counted), 1, 0.05);
  EXPECT_NEAR(some.work_seconds / counted.work_seconds, 1, 0.05);
}

TEST(Estimate, FewRowsThatFitStillMakeTheWhole) {
  const Estimate counted = with_long_rows(30000, 1000), few = with_long_rows(30000, 64);
  ASSERT_GT(counted.rows, 0);
  EXPECT_LT(counted.rows, 100);
  EXPECT_NEAR(seconds_per_token(few) / seconds_per_token(counted), 1, 0.1);
  EXPECT_EQ(counted.sampling_error, 0);
  EXPECT_GT(few.sampling_error, 0.2) << "a handful of rows says little";
  EXPECT_LT(std::abs(few.work_seconds / counted.work_seconds - 1), few.error);
}

TEST(Estimate, ACorpusOfTooLongRowsIsRefusedWithAdvice) {
  EstimateAsked asked = made_up(20);
  asked.model = "smollm2-135m";
  asked.statistics.document = 100000;
  const EstimateInputs inputs(asked);
  try {
    estimate(case_of(inputs, "h200"), inputs.records());
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* part : {"8192", "longest", "input.too_long", "truncate", "longer context"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(Estimate, ALimitOnPromptsAtOnceSlowsTheRun) {
  const EstimateInputs inputs(made_up(512));
  EstimateCase each = case_of(inputs, "h200");
  each.method.documents = 1;
  const double free = estimate(each, inputs.records()).work_seconds;
  each.engine.prompts = 1;
  EXPECT_GT(estimate(each, inputs.records()).work_seconds, 3 * free);
}

TEST(Sweep, MarksTheCheapestThatIsInTime) {
  const EstimateInputs inputs(made_up(200000));
  const EstimateCase base = case_of(inputs, "h200");
  const std::vector<SweepAxis> axes = {parse_sweep("hardware=l4,l40s,h100"),
                                       parse_sweep("method=ippd,standard")};
  const auto marked = [&](double within) {
    std::vector<std::string> found;
    for (const SweepRow& row : sweep(base, inputs.records(), listed_hardware(), axes, within, test::shape_of))
      if (row.mark.starts_with("cheapest")) found.push_back(row.values[0] + " " + row.values[1]);
    return found;
  };
  const auto any = marked(0);
  ASSERT_EQ(any.size(), 1u);
  double seconds = 0;
  for (const SweepRow& row : sweep(base, inputs.records(), listed_hardware(), axes, 0, test::shape_of)) {
    ASSERT_TRUE(row.estimate) << row.problem;
    if (row.values[0] + " " + row.values[1] == any[0]) seconds = row.estimate->total_seconds();
  }
  const auto faster = marked(0.9 * seconds);
  ASSERT_EQ(faster.size(), 1u);
  EXPECT_NE(faster[0], any[0]);
  EXPECT_TRUE(marked(0.001).empty());
}

TEST(Estimate, TheBandIsWideFarFromTheSizesMeasured) {
  const EstimateInputs inputs(made_up(100));
  EstimateCase each = case_of(inputs, "h200");
  const Estimate near = estimate(each, inputs.records());
  EXPECT_EQ(near.device_error, each.hardware->error);
  EXPECT_EQ(error_text(*each.hardware, each.config).find("times beyond"), std::string::npos);
  each.config.layers.resize(2);
  each.config.hidden = 64;
  each.config.ffn = 128;
  const Estimate tiny = estimate(each, inputs.records());
  EXPECT_GT(tiny.device_error, 1);
  EXPECT_GE(tiny.error, tiny.device_error);
  EXPECT_NE(error_text(*each.hardware, each.config).find("times beyond"), std::string::npos);
  EXPECT_EQ(band_text(0.1), "±10 %");
  EXPECT_EQ(band_text(2), "a factor of 3");
}

TEST(Sweep, MarksPricesOfAShareAndOfAWholeInstance) {
  const EstimateInputs inputs(made_up(200000));
  Hardware single = listed_hardware().find("h200"), eight = single;
  single.name = "single";
  single.instances = {{"one", 1, 4}};
  eight.name = "eight";
  eight.instances = {{"of eight", 8, 16}};
  HardwareList list;
  list.devices = {single, eight};
  const auto rows = sweep(case_of(inputs, "h200"), inputs.records(), list,
                          {parse_sweep("hardware=single,eight")}, 0, test::shape_of);
  EXPECT_TRUE(rows[0].mark.starts_with("cheapest to rent as asked")) << rows[0].mark;
  EXPECT_EQ(rows[1].mark, "cheapest (at a share of 8)");
  EstimateCase all = case_of(inputs, "h200");
  all.cost.devices = 8;
  EXPECT_EQ(
      sweep(all, inputs.records(), list, {parse_sweep("hardware=single,eight")}, 0, test::shape_of)[1].mark,
      "cheapest");
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

}  // namespace
}  // namespace sheaf

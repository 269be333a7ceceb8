#include <gtest/gtest.h>

#include "tests/estimate/listed_hardware.h"

// What the papers' figures and tables show of stack size, parallel size against batch size, and prefix
// length. Their absolute figures are of other engines; orderings and shapes of the curves are what can be
// compared.

namespace sheaf {
namespace {

using test::listed_hardware;
using test::predict;

/// Products a second where only `batch` prompts of `documents` products run at once, as in the HPD paper.
double hpd_rate(int32_t documents, int32_t batch) {
  // Lengths like Amazon Reviews: a long document, a dozen attributes.
  const RecordStatistics lengths{100, 400, 12, 6, 5};
  const int64_t rows = int64_t{documents} * batch;
  const SimulatedRun run = predict("qwen3-8b", "l40s", lengths, rows,
                                   {.name = "hpd", .documents = documents, .prompt_tokens = 1 << 20});
  return static_cast<double>(rows) / run.seconds;
}

TEST(HpdPaper, ThroughputRisesWithStackedDocumentsAndSaturates) {
  std::vector<double> rates;
  for (const int32_t documents : {1, 2, 4, 8, 16, 32, 64, 128}) rates.push_back(hpd_rate(documents, 1));
  for (size_t i = 1; i < rates.size(); ++i) EXPECT_GT(rates[i], 0.97 * rates[i - 1]) << i;
  EXPECT_GT(rates[1] / rates[0], 1.4);
  EXPECT_GT(rates[3] / rates[0], 2);
  EXPECT_LT(rates[7] / rates[6], 1.15);
}

TEST(HpdPaper, StackingServesAtLeastAsWellAsBatching) {
  for (const int32_t count : {4, 16}) EXPECT_GE(hpd_rate(count, 1), 0.98 * hpd_rate(1, count)) << count;
}

TEST(HpdPaper, BeatsOneAnswerAfterTheOther) {
  // The whole object as one answer: keys and values decoded in a chain.
  const SimulatedRun chain = predict("qwen3-8b", "l40s", {100, 400, 1, 1, 12 * (6 + 5)}, 500,
                                     {.name = "standard", .documents = 1, .prompt_tokens = 1 << 20});
  const SimulatedRun hpd = predict("qwen3-8b", "l40s", {100, 400, 12, 6, 5}, 500,
                                   {.name = "hpd", .documents = 8, .prompt_tokens = 1 << 20});
  EXPECT_GT(chain.seconds / hpd.seconds, 1.5);
}

/// Seconds for `queries` questions about one document of 512 tokens, `batch` prompts that each hold the
/// document again, questions of 12 tokens and answers of 5: table 3 of Parallel Prompting. `dense`: attention
/// over the whole packed prompt under a mask, as that paper computes it.
double parallel_seconds(int32_t queries, int32_t batch, bool dense) {
  const ModelConfig config = shape_by_name("codellama-7b");
  const DeviceModel& device = listed_hardware().find("a100-80").device;
  const int32_t parallel = queries / batch, packed = 512 + 12 * parallel;
  StepCounts prefill =
      count_step(make_probe_batch({{{batch, 0, 1, 0, 512}, {batch, 512, parallel, 0, 12}}}, 16), config);
  StepCounts decode = count_step(make_probe_batch({{{batch, 512, parallel, 14, 1}}}, 16), config);
  if (dense) {
    prefill.attention[0].cells = prefill.attention[0].pairs = static_cast<double>(batch) * packed * packed;
    decode.attention[0].cells = decode.attention[0].pairs =
        static_cast<double>(queries) * (packed + 5 * parallel);
  }
  return device.step(config, prefill).total() + 4 * device.step(config, decode).total();
}

int32_t best_batch(int32_t queries, bool dense) {
  int32_t best = 1;
  for (const int32_t batch : {2, 4, 8})
    if (parallel_seconds(queries, batch, dense) < parallel_seconds(queries, best, dense)) best = batch;
  return best;
}

TEST(ParallelPromptingPaper, MoreQuestionsOfADocumentRaiseThroughput) {
  double last = 0;
  for (const int32_t queries : {16, 64, 128, 256, 512}) {
    const double rate = queries / parallel_seconds(queries, 1, false);
    EXPECT_GT(rate, last) << queries;
    last = rate;
  }
}

TEST(ParallelPromptingPaper, UnderADenseMaskTheBestBatchGrowsWithTheQuestions) {
  EXPECT_LE(best_batch(128, true), best_batch(256, true));
  EXPECT_LE(best_batch(256, true), best_batch(1024, true));
  EXPECT_LT(best_batch(128, true), best_batch(1024, true));
  // At 128 questions a batch of 8 is the slowest, as in the table.
  for (const int32_t batch : {1, 2, 4})
    EXPECT_GT(parallel_seconds(128, 8, true), parallel_seconds(128, batch, true));
}

TEST(ParallelPromptingPaper, SpansMakeOnePromptTheBestAlways) {
  for (const int32_t queries : {128, 256, 512, 1024}) EXPECT_EQ(best_batch(queries, false), 1) << queries;
}

TEST(ParallelPromptingPaper, LongerDocumentsLowerThroughput) {
  double last = 1e30;
  for (const double document : {256.0, 512.0, 1024.0}) {
    const SimulatedRun run =
        predict("codellama-7b", "a100-80", {0, document, 16, 12, 5}, 64,
                {.name = "parallel-prompting", .documents = 1, .prompt_tokens = 1 << 20});
    const double rate = static_cast<double>(run.engine.answer_tokens) / run.seconds;
    EXPECT_LT(rate, last) << document;
    last = rate;
  }
}

/// Seconds of a decoding step of `batch` rows behind a prefix, 64 keys each of their own.
double decode_seconds(int32_t prefix, int32_t batch, bool shared) {
  const ModelConfig config = shape_by_name("codellama-7b");
  const ProbePart part = shared ? ProbePart{1, prefix, batch, 64, 1} : ProbePart{1, 0, batch, prefix + 64, 1};
  return listed_hardware()
      .find("a100-40")
      .device.step(config, count_step(make_probe_batch({{part}}, 16), config))
      .total();
}

TEST(HydragenPaper, SpeedUpGrowsWithPrefixAndBatch) {
  const auto speed_up = [](int32_t prefix, int32_t batch) {
    return decode_seconds(prefix, batch, false) / decode_seconds(prefix, batch, true);
  };
  for (const int32_t batch : {64, 256, 1024})
    for (const int32_t prefix : {1024, 2048, 4096, 8192})
      EXPECT_GT(speed_up(2 * prefix, batch), speed_up(prefix, batch)) << prefix << " " << batch;
  for (const int32_t prefix : {1024, 4096, 16384})
    for (const int32_t batch : {32, 64, 128, 256, 512})
      EXPECT_GT(speed_up(prefix, 2 * batch), 0.99 * speed_up(prefix, batch)) << prefix << " " << batch;
  EXPECT_GT(speed_up(16384, 1024), 8);
}

TEST(HydragenPaper, ALongSharedPrefixCostsLittle) {
  const double shared = decode_seconds(1024, 256, true) / decode_seconds(16384, 256, true);
  const double apart = decode_seconds(1024, 256, false) / decode_seconds(16384, 256, false);
  EXPECT_GT(shared, 0.5);
  EXPECT_LT(apart, 0.3);
}

}  // namespace
}  // namespace sheaf

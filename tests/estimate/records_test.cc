#include <gtest/gtest.h>
#include <random>

#include "core/estimate/estimate.h"
#include "io/base/process.h"
#include "tests/estimate/listed_hardware.h"

namespace sheaf {
namespace {

using test::listed_hardware;

std::vector<ReadyRecord> rows_of(const RecordStatistics& statistics, int64_t count) {
  auto bin = std::make_shared<BinParts>();
  bin->instruction = make_up_tokens(50);
  return make_up_records(statistics, count, {{"", bin}}, 100);
}

EstimateCase case_of(const char* method) {
  EstimateCase each{"qwen3-8b", shape_by_name("qwen3-8b"), &listed_hardware().find("h200")};
  each.method.name = method;
  return each;
}

TEST(SamplingError, FallsWithTheSampleAndIsNoneOfTheWhole) {
  const EstimateCase each = case_of("ippd");
  auto many = rows_of({0, 1, 1, 1, 1}, 1024), few = rows_of({0, 1, 1, 1, 1}, 64);
  std::mt19937 random(3);
  std::gamma_distribution<double> gamma(4, 250);
  for (auto* rows : {&many, &few})
    for (ReadyRecord& row : *rows) row.parts.document = make_up_tokens(gamma(random));
  const double error = sampling_error(many, 1'000'000, each, {}, 0);
  // Lengths differ by half their mean: 1.75 times a half over the root of 1024.
  EXPECT_NEAR(error, 1.75 * 0.5 / 32, 0.015);
  EXPECT_GT(sampling_error(few, 1'000'000, each, {}, 0), 1.5 * error);
  EXPECT_EQ(sampling_error(many, 1024, each, {}, 0), 0);
  EXPECT_LT(sampling_error(many, 1100, each, {}, 0), 0.5 * error);
}

TEST(SamplingError, SeesWhatTheMethodComputes) {
  // Equal documents, questions of many lengths: they weigh little where each is asked behind the whole
  // document.
  std::vector<ReadyRecord> rows = rows_of({0, 300, 3, 100, 8}, 256);
  const Tokens document = make_up_tokens(1000);
  for (ReadyRecord& row : rows) row.parts.document = document;
  EXPECT_GT(sampling_error(rows, 100000, case_of("ippd"), {}, 0),
            sampling_error(rows, 100000, case_of("standard"), {}, 0));
}

TEST(SamplingError, IsLargeWhereFewRowsFit) {
  const auto rows = rows_of({0, 60000, 1, 12, 8}, 64);
  PackingRules cut;
  cut.too_long = TooLong::truncate;
  const EstimateCase each = case_of("ippd");  // 40,960 positions
  EXPECT_GT(sampling_error(rows, 100000, each, {}, 0), 1.5 * sampling_error(rows, 100000, each, cut, 0));
}

TEST(SamplingError, IsLargeWhereFewRowsAgree) {
  const EstimateCase each = case_of("ippd");
  const auto error = [&](int64_t count) {
    return sampling_error(rows_of({0, 300, 1, 12, 8}, count), 100000, each, {}, 0);
  };
  EXPECT_GE(error(1), 1);
  EXPECT_GE(error(4), 0.5);
  EXPECT_GE(error(8), 0.3);
  EXPECT_LT(error(64), 0.2);
  EXPECT_EQ(sampling_error(rows_of({0, 300, 1, 12, 8}, 1), 1, each, {}, 0), 0);
}

TEST(RepeatRows, ShareNothingButTheInstruction) {
  const std::vector<ReadyRecord> rows = rows_of({0, 100, 1, 12, 8}, 3);
  const std::vector<ReadyRecord> repeated = repeat_records(rows, 7, 30000);
  ASSERT_EQ(repeated.size(), 7u);
  for (size_t i = 0; i < repeated.size(); ++i) {
    EXPECT_EQ(repeated[i].parts.bin, rows[0].parts.bin);
    EXPECT_EQ(repeated[i].parts.document.size(), rows[i % 3].parts.document.size());
    EXPECT_EQ(repeated[i].parts.document == rows[i % 3].parts.document, i < 3) << i;
  }
}

TEST(PlanRows, LeavesOutWhatNoPromptHolds) {
  std::vector<ReadyRecord> rows = rows_of({0, 100, 1, 12, 8}, 4);
  rows[1].parts.document = make_up_tokens(50000);
  rows[2].refused = "a question has 30 options";
  const EstimateCase each = case_of("ippd");
  const MemoryPlan memory = plan_memory(each);
  const PlannedRecords planned = plan_records(rows, each, memory, {});
  EXPECT_EQ(planned.refused, 2);
  EXPECT_GT(planned.longest, 50000);
  ASSERT_EQ(planned.stacks.size(), 2u);  // before the long one and after it
  EXPECT_EQ(planned.stacks[0].slots.size() + planned.stacks[1].slots.size(), 2u);
}

TEST(PlanRows, TellsRowsWithoutMemoryFromRowsWithoutPositions) {
  std::vector<ReadyRecord> rows = rows_of({0, 100, 1, 12, 8}, 4);
  rows[1].parts.document = make_up_tokens(50000);
  rows[3].parts.document = make_up_tokens(9000);
  EstimateCase each = case_of("ippd");
  MemoryPlan memory = plan_memory(each);
  memory.pages = 5000 / kPageSize;
  const PlannedRecords planned = plan_records(rows, each, memory, {});
  EXPECT_EQ(planned.refused, 2);
  EXPECT_EQ(planned.unheld, 1);
  EXPECT_NE(memory_advice(each).find("a device with more memory"), std::string::npos);
  each.engine.kv_memory_gb = 1;
  EXPECT_NE(memory_advice(each).find("engine.kv_memory_gb"), std::string::npos);
}

TEST(FindDeviceModel, ACpuIsKnownByItsProcessorAndCores) {
  // The list has a profile of two cores of a Neoverse-V1.
  const std::optional<DeviceModel> found = find_device_model("CPU, fp32, NEON, 2 threads");
  ASSERT_TRUE(found);
  if (processor_and_cores() == "Neoverse-V1, 2 cores")
    EXPECT_LT(found->error, 0.3);
  else
    EXPECT_GE(found->error, 0.4);
  EXPECT_TRUE(find_device_model("CPU, int8, i8mm, 2 threads"));
  EXPECT_FALSE(find_device_model("CPU, fp32, NEON, 3 threads"));
  EXPECT_TRUE(find_device_model("NVIDIA H200"));
}

}  // namespace
}  // namespace sheaf

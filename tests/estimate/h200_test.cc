#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tests/estimate/listed_hardware.h"
#include "tests/files.h"

// Measured figures of one H200, predicted from the profiles alone: the rows are made up in the lengths of
// bench/make_workloads.py (few contexts: as they were drawn), and nothing is fitted to them.

namespace sheaf {
namespace {

/// How a figure was measured.
struct Numbers {
  const char* name;  ///< of a figure in h200_figures.json
  Precision precision;
  KvPrecision keys;
};
constexpr Numbers kNumbers[] = {{"bf16", Precision::bf16, KvPrecision::automatic},
                                {"fp8", Precision::fp8, KvPrecision::automatic},
                                {"fp8_keys", Precision::fp8, KvPrecision::fp8}};

/// Questions a second, or products of the catalog; 0: not measured.
double figure_of(const std::string& workload, const std::string& shape, const char* numbers) {
  const auto file = nlohmann::json::parse(read_text(SHEAF_SOURCE_DIR "/tests/estimate/h200_figures.json"));
  for (const auto& each : file["figures"])
    if (each["workload"] == workload && each["shape"] == shape) return each.value(numbers, 0.0);
  return 0;
}

struct Rows {
  const char* method;
  int64_t rows;
  RecordStatistics lengths;
};

Rows rows_of(const std::string& workload) {
  if (workload == "squad2") return {"ippd", 1365, {47, 178, 8.70, 12.6, 3.9}};
  if (workload == "race") return {"ippd", 1407, {40, 344, 3.51, 40, 1}};
  if (workload == "narrativeqa") return {"ippd", 355, {2754, 759, 29.73, 12, 5.8}};
  if (workload == "longhealth") return {"ippd", 20, {73, 13707, 20, 72.5, 1}};
  return {"hpd", 4035, {71, 31, 11.5, 6, 3.3}};
}

using Measured = std::tuple<const char*, const char*, Numbers>;
class H200 : public testing::TestWithParam<Measured> {};

TEST_P(H200, IsPredictedWithinAFifth) {
  const auto& [workload, shape, numbers] = GetParam();
  const auto [method, rows, lengths] = rows_of(workload);
  const double measured = figure_of(workload, shape, numbers.name);
  ASSERT_GT(measured, 0) << "h200_figures.json has no figure for " << workload << " on " << shape << " in "
                         << numbers.name;
  Job::ModelPart model;
  model.dtype = numbers.precision;
  const HardwareList list = test::hardware_for(model, numbers.keys);
  const SimulatedRun run = test::predict(shape, list.find("h200"), lengths, rows,
                                         {.name = method, .documents = 0, .prompt_tokens = 32768});
  const double items =
      std::string(method) == "hpd" ? static_cast<double>(rows) : static_cast<double>(run.engine.answers);
  const double predicted = items / run.seconds;
  RecordProperty("predicted", std::to_string(predicted));
  EXPECT_NEAR(predicted / measured, 1, 0.2)
      << workload << " " << shape << ": " << predicted << " predicted, " << measured << " measured";
}

std::string name_of(const testing::TestParamInfo<Measured>& measured) {
  const auto& [workload, shape, numbers] = measured.param;
  std::string name = fmt::format("{}_{}_{}", workload, shape, numbers.name);
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(
    Performance, H200,
    testing::Combine(testing::Values("squad2", "race", "narrativeqa", "longhealth", "catalog"),
                     testing::Values("qwen3-8b", "qwen3-1.7b"), testing::ValuesIn(kNumbers)),
    name_of);
// The profile in FP8 has no steps of models with experts.
INSTANTIATE_TEST_SUITE_P(Experts, H200,
                         testing::Combine(testing::Values("squad2", "narrativeqa", "catalog"),
                                          testing::Values("qwen3-30b-a3b", "gpt-oss-20b"),
                                          testing::Values(kNumbers[0])),
                         name_of);

}  // namespace
}  // namespace sheaf

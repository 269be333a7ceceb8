#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "tests/estimate/listed_hardware.h"

// The figures of docs/performance.md (one H200; v7 is bf16), from the profiles alone: the rows are made
// up in the lengths of bench/make_workloads.py (few contexts: as they were drawn), and nothing is fitted to
// them.

namespace sheaf {
namespace {

struct Measured {
  const char* workload;
  const char* shape;
  const char* column = "v7";
  Precision precision = Precision::bf16;
  KvPrecision keys = KvPrecision::automatic;
};

/// The same in FP8.
Measured in_fp8(Measured plain) {
  return {plain.workload, plain.shape, "FP8", Precision::fp8};
}
Measured with_fp8_keys(Measured plain) {
  return {plain.workload, plain.shape, "FP8 keys", Precision::fp8, KvPrecision::fp8};
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream rest(line.substr(1));
  for (std::string cell; std::getline(rest, cell, '|');) {
    const size_t first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return cells;
}

/// Questions a second, or products of the catalog, as the page has them; 0: it does not.
double figure_of(const Measured& asked, const char* method) {
  std::ifstream page(SHEAF_SOURCE_DIR "/docs/performance.md");
  size_t column = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("|")) continue;
    const std::vector<std::string> cells = cells_of(line);
    if (cells[0] == "workload")
      column = static_cast<size_t>(std::find(cells.begin(), cells.end(), asked.column) - cells.begin());
    else if (cells.size() > column && cells[0] == std::string(asked.workload) + " (" + method + ")" &&
             cells[1] == asked.shape)
      return std::stod(cells[column]);
  }
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

class H200 : public testing::TestWithParam<Measured> {};

TEST_P(H200, IsPredictedWithinAFifth) {
  const auto& [workload, shape, column, precision, keys] = GetParam();
  const auto [method, rows, lengths] = rows_of(workload);
  const double measured = figure_of(GetParam(), method);
  ASSERT_GT(measured, 0) << "docs/performance.md has no " << column << " figure for " << workload << " on "
                         << shape;
  Job::ModelPart model;
  model.dtype = precision;
  const HardwareList list = test::hardware_for(model, keys);
  const SimulatedRun run = test::predict(shape, list.find("h200"), lengths, rows,
                                         {.name = method, .documents = 0, .prompt_tokens = 32768});
  const double items =
      std::string(method) == "hpd" ? static_cast<double>(rows) : static_cast<double>(run.engine.answers);
  const double predicted = items / run.seconds;
  RecordProperty("predicted", std::to_string(predicted));
  EXPECT_NEAR(predicted / measured, 1, 0.2)
      << workload << " " << shape << ": " << predicted << " predicted, " << measured << " measured";
}

constexpr Measured kWorkloads[] = {{"squad2", "qwen3-8b"},       {"race", "qwen3-8b"},
                                   {"narrativeqa", "qwen3-8b"},  {"longhealth", "qwen3-8b"},
                                   {"catalog", "qwen3-8b"},      {"squad2", "qwen3-1.7b"},
                                   {"race", "qwen3-1.7b"},       {"narrativeqa", "qwen3-1.7b"},
                                   {"longhealth", "qwen3-1.7b"}, {"catalog", "qwen3-1.7b"}};

std::vector<Measured> all_measured() {
  std::vector<Measured> all;
  for (const Measured& each : kWorkloads)
    for (const Measured& in : {each, in_fp8(each), with_fp8_keys(each)}) all.push_back(in);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Performance, H200, testing::ValuesIn(all_measured()));

}  // namespace
}  // namespace sheaf

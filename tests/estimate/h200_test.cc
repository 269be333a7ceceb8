#include <gtest/gtest.h>

#include "tests/estimate/listed_hardware.h"

// The figures of docs/performance.md (one H200, v6 and v7), from the calibration alone: the rows are made up
// in the lengths of bench/make_workloads.py (few contexts: as they were drawn), and nothing is fitted to
// them.

namespace sheaf {
namespace {

struct Measured {
  const char* workload;
  const char* shape;
  double per_second;  ///< questions, or products of the catalog
};

struct Rows {
  const char* method;
  int64_t rows;
  RowStatistics lengths;
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
  const auto& [workload, shape, measured] = GetParam();
  const auto [method, rows, lengths] = rows_of(workload);
  const SimulatedRun run = test::predict(shape, "h200", lengths, rows, {method, 0, 32768});
  const double items =
      std::string(method) == "hpd" ? static_cast<double>(rows) : static_cast<double>(run.engine.answers);
  const double predicted = items / run.seconds;
  RecordProperty("predicted", std::to_string(predicted));
  EXPECT_NEAR(predicted / measured, 1, 0.2)
      << workload << " " << shape << ": " << predicted << " predicted, " << measured << " measured";
}

INSTANTIATE_TEST_SUITE_P(
    Performance, H200,
    testing::Values(Measured{"squad2", "qwen3-8b", 1211}, Measured{"race", "qwen3-8b", 325},
                    Measured{"narrativeqa", "qwen3-8b", 857}, Measured{"longhealth", "qwen3-8b", 40.8},
                    Measured{"catalog", "qwen3-8b", 340}, Measured{"squad2", "qwen3-1.7b", 5011},
                    Measured{"race", "qwen3-1.7b", 1442}, Measured{"narrativeqa", "qwen3-1.7b", 3132},
                    Measured{"longhealth", "qwen3-1.7b", 145}, Measured{"catalog", "qwen3-1.7b", 1357}));

}  // namespace
}  // namespace sheaf

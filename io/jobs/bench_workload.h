#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "io/jobs/bench_backend.h"
#include "io/jobs/bench_stacks.h"

namespace sheaf {

struct BenchOptions {
  std::string workload;  ///< its file
  BenchModel model{"qwen3-8b", ""};
  BenchPacking packing;
  int32_t tokens = 0;  ///< per step; 0: as the backend prefers
  int32_t repeat = 1;  ///< runs; the first of several only warms up
};

/// Times a workload: what `sheaf bench` prints (docs/performance.md).
nlohmann::ordered_json bench_workload(const BenchOptions& options);

}  // namespace sheaf

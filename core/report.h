#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "core/engine/engine.h"
#include "core/job.h"
#include "core/plan/pipeline.h"
#include "core/run_statistics.h"

namespace sheaf {

/// What a run did, how fast, and for how much. docs/report.md explains its JSON form.
struct Report {
  std::string job, model, backend, method;
  EngineStats engine;
  PipelineStats pipeline;
  int32_t page_size = 0;
  int64_t kv_bytes_per_token = 0;
  double open_seconds = 0;   ///< model, tokenizer, weights made ready
  double total_seconds = 0;  ///< from start to the last row
  double usd_per_hour = 0;
  int32_t devices = 1;
  int64_t rows_before = 0;  ///< that earlier sessions of the run had written
  std::vector<std::pair<std::string, double>> device_seconds;  ///< by kind of kernel, as the backend has them
  RunStatistics statistics;

  double items_per_second() const;    ///< over the work, opening the model not counted
  double usd() const;                 ///< over the total time
  double usd_per_1000_items() const;  ///< likewise
  double stall_share() const;         ///< of the decode loop's time, that with no step in flight
};

/// The version of the JSON form: it grows when a key changes its meaning or goes, not when one is added.
inline constexpr int64_t kReportVersion = 1;

nlohmann::ordered_json report_json(const Report& report);
/// A few lines for the terminal.
std::string report_text(const Report& report);

}  // namespace sheaf

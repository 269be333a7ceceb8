#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "core/engine/engine.h"
#include "core/job.h"
#include "core/plan/pipeline.h"

namespace sheaf {

/// What a run did, how fast, and for how much.
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

  double items_per_second() const;    ///< over the work, opening the model not counted
  double usd_per_1000_items() const;  ///< over the total time
};

nlohmann::ordered_json report_json(const Report& report);
/// A few lines for the terminal.
std::string report_text(const Report& report);

}  // namespace sheaf

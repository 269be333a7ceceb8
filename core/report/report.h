#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/engine/engine.h"
#include "core/job/job.h"
#include "core/plan/pipeline.h"
#include "core/report/run_statistics.h"

namespace sheaf {

/// What one engine of a run did.
struct EngineUse {
  std::string name = {};  ///< "NVIDIA H200 (cuda:0), bf16"
  EngineStats stats = {};
  TimedStages device_seconds = {};  ///< as the backend has them
  std::string failed = {};          ///< why it was left out; empty: it was not
};

/// What a run did, how fast, and for how much. docs/report.md explains its JSON form.
struct Report {
  std::string job, model, backend, method;
  std::string chat;           ///< the name of the chat template
  std::string date;           ///< when the run began: "2026-11-16T22:40:05Z"
  std::string corpus;         ///< its path
  std::string corpus_sha256;  ///< of what its files hold
  int64_t limit = 0;          ///< records of it that the job reads at most; 0: all
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();  ///< of the job, by section
  std::vector<std::string> changed_settings =
      {};              ///< settings that are not as by default: "method.documents"
  EngineStats engine;  ///< all engines together
  std::vector<EngineUse> engines = {};
  PipelineStats pipeline;
  int32_t page_size = 0;
  int64_t kv_bytes_per_token = 0;
  double open_seconds = 0;   ///< model, tokenizer, weights made ready
  double total_seconds = 0;  ///< from start to the last row
  double usd_per_hour = 0;
  int32_t devices = 1;
  std::optional<double> predicted_seconds;  ///< of the decode loops, where the devices have a profile
  double predicted_error = 0;               ///< error band of predicted_seconds, as a share
  std::optional<KvStoreUse> store;          ///< of keys and values, where there is one
  RunStatistics statistics;
};

/// The version of the JSON form: it grows when a key changes its meaning or goes, not when one is added.
inline constexpr int64_t kReportVersion = 3;

nlohmann::ordered_json report_json(const Report& report);
/// Makes the rates and shares of a report anew from its counts and seconds.
void set_rates(nlohmann::ordered_json& report);
/// Whether the run has rows, those of a session that was killed before it counted them included.
bool has_rows(const nlohmann::ordered_json& report);
/// A few lines for the terminal.
std::string report_text(const nlohmann::ordered_json& report);

}  // namespace sheaf

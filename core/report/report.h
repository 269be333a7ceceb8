#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/engine/engine.h"
#include "core/plan/pipeline.h"
#include "core/report/run_statistics.h"

namespace sheaf {

/// What one engine of a run did.
struct EngineUse {
  std::string name = {};  ///< "NVIDIA H200 (cuda:0), bf16"
  EngineStats stats = {};
  TimedStages device_seconds = {};  ///< as the backend has them
  Routing routing = {};             ///< of a mixture of experts, as the backend has it
  std::string failed = {};          ///< why it was left out; empty: it was not
};

/// What a run did, how fast, and for how much. docs/report.md explains its JSON form.
struct Report {
  std::string job, model, backend, method;
  std::string chat;           ///< the name of the chat template
  std::string date;           ///< when the run began: "2026-11-16T22:40:05Z"
  std::string corpus;         ///< its path
  std::string corpus_sha256;  ///< of what its files hold
  int64_t limit = 0;          ///< most records that the job reads; 0: all
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

  Routing routing() const;  ///< of all engines together
};

/// The version of the JSON form: it grows when a key changes its meaning or goes, not when one is added.
inline constexpr int64_t kReportVersion = 4;

nlohmann::ordered_json report_json(const Report& report);
/// Makes the rates and shares of a report from its counts and seconds.
void set_rates(nlohmann::ordered_json& report);
/// Two reports of parts of one run as one: counts and seconds are summed, rates are made from the sums,
/// the throughput of `later` follows on that of `earlier`. What describes the run is taken from `later`.
/// Throws nlohmann's exceptions where one of them is no whole report.
nlohmann::ordered_json add_reports(const nlohmann::ordered_json& earlier,
                                   const nlohmann::ordered_json& later);  // add_reports.cc
/// Brings a report of version 2 or 3 to the present names and meanings of its keys.
void update_report(nlohmann::ordered_json& report);  // report_check.cc
/// Refuses what is not a whole report of this version, naming `source` and the key: its file may have been
/// damaged or written by somebody else. What passes can be shown, added up and compared without further
/// checks.
void check_report(const nlohmann::ordered_json& report, const std::string& source);  // report_check.cc
/// The whole report in the text of a report.json; refuses anything else, naming its `source`.
nlohmann::ordered_json read_report(const std::string& text, const std::string& source);

/// What a run that is not finished saved of its report in a progress.json.
struct SavedReport {
  int64_t rows = 0, rejects = 0;  ///< in the run folder when it was saved
  nlohmann::ordered_json report;
};
SavedReport read_saved_report(const std::string& text, const std::string& source);
/// Whether the run has rows.
bool has_rows(const nlohmann::ordered_json& report);
/// Whether the run counted what experts of a mixture took.
bool counts_experts(const nlohmann::ordered_json& report);
/// Rows that seconds, tokens and answers belong to: all but those of a session that was killed before it
/// saved its counts.
int64_t counted_rows(const nlohmann::ordered_json& report);
/// A few lines for the terminal.
std::string report_text(const nlohmann::ordered_json& report);

// What people are told of rejected records. `reasons`: `reject_reasons` of a report, the most common first.

/// Lines for the terminal: how many of the records, why, and `where` all of them are.
std::string rejects_text(int64_t rejects, int64_t records, const nlohmann::ordered_json& reasons,
                         const std::string& where);

/// Where half of the records or more were rejected, a sentence that says so; else empty.
std::string rejects_warning(int64_t rejects, int64_t records);

/// Refuses a corpus of which no record can be used: it is empty, or every record was rejected. `where` all
/// rejects are, if they are anywhere.
void check_not_lost(const std::string& corpus, int64_t rejects, int64_t records,
                    const nlohmann::ordered_json& reasons, const std::string& where = "");

}  // namespace sheaf

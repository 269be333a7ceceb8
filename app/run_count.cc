#include "app/run_count.h"

#include <fmt/format.h>

#include "core/add_reports.h"

namespace sheaf {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;

constexpr auto kBetweenSaves = 10s;

}  // namespace

RunCount::RunCount(Report about, RunFolder& folder) : folder_(folder), session_(std::move(about)) {
  uncounted_ = folder.rows();
  const ordered_json saved = ordered_json::parse(folder.saved_progress(), nullptr, false);
  if (!saved.is_object()) return;
  try {
    const auto rows = saved.at("rows").get<int64_t>();
    // Where the folder had to go back behind what was counted, the count is of no use.
    if (rows > folder.rows() || saved.at("report").at("version") != kReportVersion) return;
    add_reports(saved.at("report"), saved.at("report"));  // throws where it is not whole
    earlier_ = saved.at("report");
    uncounted_ -= rows;
  } catch (const ordered_json::exception&) {
  }
}

void RunCount::start(double open_seconds) {
  const std::lock_guard lock(mutex_);
  session_.open_seconds = open_seconds;
  start_ = saved_at_ = Clock::now();
  session_.statistics.start();
}

void RunCount::step(const EngineStats& engine, const PipelineStats& pipeline, const Backend& backend,
                    bool last) {
  const std::lock_guard lock(mutex_);
  session_.statistics.step(engine, pipeline);
  if (!last && Clock::now() - asked_at_ < 1s) return;
  asked_at_ = Clock::now();
  session_.device_seconds = backend.stage_seconds();
}

void RunCount::predict(double seconds) {
  const std::lock_guard lock(mutex_);
  session_.predicted_seconds = seconds;
}

void RunCount::row(const ordered_json& row, const Outcome& outcome) {
  const std::lock_guard lock(mutex_);
  session_.statistics.row(row, outcome.answers);
}

void RunCount::reject(const Reject& reject) {
  const std::lock_guard lock(mutex_);
  session_.statistics.reject(reject);
}

void RunCount::committed(const PipelineStats& pipeline, bool at_once) {
  if (!at_once && Clock::now() - saved_at_ < kBetweenSaves) return;
  saved_at_ = Clock::now();
  const ordered_json so_far{
      {"rows", folder_.rows()}, {"rejects", folder_.rejects()}, {"report", report(pipeline)}};
  folder_.save_progress(so_far.dump() + "\n");
}

ordered_json RunCount::report(const PipelineStats& pipeline) {
  const std::lock_guard lock(mutex_);
  session_.engine = session_.statistics.engine();
  session_.pipeline = pipeline;
  session_.total_seconds =
      session_.open_seconds + std::chrono::duration<double>(Clock::now() - start_).count();
  ordered_json whole = report_json(session_);
  whole["rows_uncounted"] = uncounted_;
  if (earlier_) whole = add_reports(*earlier_, whole);
  return whole;
}

}  // namespace sheaf

#include "io/jobs/run_count.h"

#include <algorithm>
#include <ctime>
#include <unistd.h>

#include "core/base/error.h"
#include "core/report/report.h"
#include "io/run_folder/manifest.h"

namespace sheaf {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;

constexpr auto kBetweenSaves = 10s;

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace

RunCount::RunCount(Report about, RowSink& sink)
    : sink_(sink), session_(std::move(about)), asked_at_(session_.engines.size()) {
  rows_ = rows_uncounted_ = sink.rows();
  rejects_ = rejects_uncounted_ = sink.rejects();
  if (sink.saved_progress().empty()) return;
  try {
    SavedReport saved = read_saved_report(sink.saved_progress(), "progress.json");
    // Where the folder had to go back behind what was counted, the count is of no use.
    if (saved.rows > sink.rows() || saved.rejects > sink.rejects()) return;
    earlier_ = std::move(saved.report);
    rows_uncounted_ -= saved.rows;
    rejects_uncounted_ -= saved.rejects;
  } catch (const Error& error) {
    // Saved statistics are no rows: no reason to stop.
    notice_ = fmt::format("the report will not cover earlier sessions of this run: {}", error.what());
  }
}

void RunCount::start(double open_seconds) {
  const std::lock_guard lock(mutex_);
  session_.open_seconds = open_seconds;
  start_ = Clock::now();
  session_.statistics.start();
  committed_ = session_;
}

void RunCount::step(size_t engine, const EngineStats& stats, const Engines& engines, bool last) {
  if (!last) save_if_due(false);  // others see that the run is alive, however long a group takes
  const std::lock_guard lock(mutex_);
  session_.engines[engine].stats = stats;
  if (!last && Clock::now() - asked_at_[engine] < 1s) return;
  asked_at_[engine] = Clock::now();
  session_.engines[engine].device_seconds = engines.stage_seconds(engine);
  session_.engines[engine].routing = engines.routing(engine);
}

int64_t RunCount::engines_left() {
  const std::lock_guard lock(mutex_);
  return std::ranges::count_if(session_.engines, [](const EngineUse& each) { return each.failed.empty(); });
}

void RunCount::committed(const PipelineStats& pipeline) {
  {
    const std::lock_guard lock(mutex_);
    bring_up_to_date(pipeline);
    committed_ = session_;
    rows_ = sink_.rows();
    rejects_ = sink_.rejects();
  }
  save_if_due(true);
}

/// The first group is saved at once.
void RunCount::save_if_due(bool committed) {
  {
    const std::lock_guard lock(saving_);
    if (Clock::now() - saved_at_ < kBetweenSaves && !(committed && !saved_once_)) return;
  }
  save();
}

void RunCount::save(bool ended) {
  const std::lock_guard saving(saving_);
  saved_at_ = Clock::now();
  saved_once_ = true;
  ordered_json so_far;
  {
    const std::lock_guard lock(mutex_);
    so_far = {{"rows", rows_}, {"rejects", rejects_}, {"report", all_sessions(committed_)}};
  }
  if (records_ > 0) so_far["records"] = records_.load();
  so_far["updated"] = std::time(nullptr);
  so_far["ended"] = ended;
  so_far["host"] = host_name();
  so_far["pid"] = ::getpid();
  sink_.save_progress(so_far.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

ordered_json RunCount::report(const PipelineStats& pipeline) {
  const std::lock_guard lock(mutex_);
  bring_up_to_date(pipeline);
  return all_sessions(session_);
}

void RunCount::bring_up_to_date(const PipelineStats& pipeline) {
  session_.engine = session_.statistics.engine();
  session_.pipeline = pipeline;
  session_.total_seconds =
      session_.open_seconds + std::chrono::duration<double>(Clock::now() - start_).count();
}

ordered_json RunCount::all_sessions(const Report& session) const {
  ordered_json whole = report_json(session);
  for (const auto& [key, uncounted] : {std::pair("rows", rows_uncounted_), {"rejects", rejects_uncounted_}}) {
    whole[fmt::format("{}_uncounted", key)] = uncounted;
    whole[key] = whole[key].get<int64_t>() + uncounted;
  }
  return earlier_ ? add_reports(*earlier_, whole) : whole;
}

}  // namespace sheaf

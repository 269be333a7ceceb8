#include "core/report.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/task/value.h"

namespace sheaf {
namespace {

double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

int64_t saved(const EngineStats& engine) {
  return engine.alone_rows - engine.rows();
}

double kv_peak_mb(const Report& report) {
  return static_cast<double>(int64_t{report.engine.peak_pages} * report.page_size *
                             report.kv_bytes_per_token) /
         1e6;
}

}  // namespace

double Report::items_per_second() const {
  return ratio(static_cast<double>(pipeline.items), total_seconds - open_seconds);
}

double Report::usd() const {
  return usd_per_hour * devices * total_seconds / 3600;
}

double Report::usd_per_1000_items() const {
  return ratio(usd(), static_cast<double>(pipeline.items)) * 1000;
}

double Report::stall_share() const {
  return ratio(engine.idle_seconds, engine.step_seconds + engine.host_seconds);
}

nlohmann::ordered_json report_json(const Report& r) {
  const double decode = r.engine.step_seconds;
  // Stages that overlap add up to more than the total.
  const double other = std::max(0.0, r.total_seconds - r.open_seconds - r.pipeline.read_seconds -
                                         r.pipeline.plan_seconds - decode - r.pipeline.emit_seconds);
  nlohmann::ordered_json json = {
      {"version", kReportVersion},
      {"job", valid_utf8(r.job)},
      {"model", valid_utf8(r.model)},
      {"backend", valid_utf8(r.backend)},
      {"method", r.method},
      {"items", r.pipeline.items},
      {"rejects", r.pipeline.rejects},
      {"answers", r.engine.answers},
      {"rows_before", r.rows_before},
      {"items_per_second", r.items_per_second()},
      {"tokens",
       {{"computed", r.engine.rows()},
        {"prefill", r.engine.prefill_rows},
        {"decode", r.engine.decode_rows},
        {"one_prompt_per_question", r.engine.alone_rows},
        {"saved", saved(r.engine)},
        {"answers", r.engine.answer_tokens}}},
      {"steps", r.engine.steps},
      {"split_steps", r.engine.split_steps},
      {"tokens_per_step", ratio(static_cast<double>(r.engine.rows()), static_cast<double>(r.engine.steps))},
      {"answer_tokens_per_step",
       ratio(static_cast<double>(r.engine.answer_tokens), static_cast<double>(r.engine.steps))},
      {"kv_peak_mb", kv_peak_mb(r)},
      {"seconds",
       {{"total", r.total_seconds},
        {"open", r.open_seconds},
        {"read", r.pipeline.read_seconds},
        {"plan", r.pipeline.plan_seconds},
        {"decode", decode},
        {"write", r.pipeline.emit_seconds},
        {"other", other}}},
      {"stall",
       {{"share", r.stall_share()},
        {"idle_seconds", r.engine.idle_seconds},
        {"host_seconds", r.engine.host_seconds},
        {"waited_seconds", r.engine.waited_seconds}}},
      {"cost",
       {{"usd_per_hour", r.usd_per_hour},
        {"devices", r.devices},
        {"usd", r.usd()},
        {"usd_per_1000_items", r.usd_per_1000_items()}}}};
  auto& device = json["device_seconds"] = nlohmann::ordered_json::object();
  for (const auto& [kind, seconds] : r.device_seconds) device[kind] = seconds;
  r.statistics.add_to(json);
  return json;
}

std::string report_text(const Report& r) {
  const EngineStats& e = r.engine;
  std::string text =
      fmt::format("{} items, {} answers, {} rejects in {:.1f} s: {:.2f} items/s\n", r.pipeline.items,
                  e.answers, r.pipeline.rejects, r.total_seconds, r.items_per_second());
  text +=
      fmt::format("  tokens   {} computed ({} prompt, {} decoded); one prompt per question: {} ({:.1f}x)\n",
                  e.rows(), e.prefill_rows, e.decode_rows, e.alone_rows,
                  ratio(static_cast<double>(e.alone_rows), static_cast<double>(e.rows())));
  text += fmt::format(
      "  steps    {}, {:.1f} tokens computed and {:.1f} answer tokens a step; keys and values at most {:.0f} "
      "MB\n",
      e.steps, ratio(static_cast<double>(e.rows()), static_cast<double>(e.steps)),
      ratio(static_cast<double>(e.answer_tokens), static_cast<double>(e.steps)), kv_peak_mb(r));
  text += fmt::format(
      "  seconds  open {:.2f}, read {:.2f}, plan {:.2f}, decode {:.2f}, write {:.2f}; stalled {:.1f} %\n",
      r.open_seconds, r.pipeline.read_seconds, r.pipeline.plan_seconds, e.step_seconds,
      r.pipeline.emit_seconds, 100 * r.stall_share());
  if (r.usd_per_hour > 0)
    text += fmt::format("  cost     ${:.4f} per 1,000 items at ${:.2f} an hour on {} device{}\n",
                        r.usd_per_1000_items(), r.usd_per_hour, r.devices, r.devices == 1 ? "" : "s");
  return text;
}

}  // namespace sheaf

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "core/estimate/fleet.h"
#include "core/estimate/sweep.h"
#include "core/report/svg_plot.h"

namespace sheaf {
namespace {

std::string bytes_text(double bytes) {
  for (const auto& [size, name] : {std::pair{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}})
    if (bytes >= size) return fmt::format("{:.{}f} {}", bytes / size, bytes / size < 100 ? 1 : 0, name);
  return fmt::format("{:.0f} kB", bytes / 1e3);
}

std::string failures_text(double count) {
  return fmt::format("{:.{}f}", count, count < 10 ? 2 : 0);
}

/// A share of what all devices are paid for.
std::string share_text(double seconds, const FleetRun& run) {
  return fmt::format("{:.1f} %", 100 * seconds / (run.devices * run.seconds));
}

}  // namespace

std::string fleet_text(const EstimateCase& asked, const Fleet& fleet) {
  const FleetRun& run = fleet.run;
  const ShardWork& shard = fleet.shard;
  const nlohmann::ordered_json json = fleet_json(asked, fleet);
  const double loaded = shard.model_bytes * std::min(run.devices, fleet.asked.shards);  // at the start
  const double all_hours = run.devices * run.seconds / 3600;
  std::string text = fmt::format(
      "fleet     {} devices, {} shards of {} each, {:.1f} for each device\n"
      "          {} until the last row, {} with all devices paid until then\n"
      "          {} of that is work; starting tasks and loading models {}, devices without a shard at the "
      "end {}\n",
      number_text(run.devices), number_text(fleet.asked.shards), time_text(shard.seconds),
      static_cast<double>(fleet.asked.shards) / run.devices, time_text(run.seconds),
      money_text(json.at("usd").get<double>()), share_text(run.work_seconds, run),
      share_text(run.start_seconds, run), share_text(run.idle_seconds, run));
  text += fmt::format(
      "failures  {} expected in {} device-hours, one in {}; {} of the fleet's time: each costs what was not "
      "committed "
      "(at most {}), a restart ({}) and 10 min without the device\n",
      failures_text(run.failures), number_text(std::round(all_hours)), number_text(fleet.asked.failure_hours),
      share_text(run.failed_seconds, run), time_text(shard.window_seconds), time_text(shard.open_seconds));
  text += fmt::format(
      "store     {} a second of records and rows, {} in all; {} of models, and at the start {} at once, for "
      "{} at {} a "
      "second\n",
      bytes_text(run.store_rate), bytes_text(shard.data_bytes * fleet.asked.shards),
      bytes_text(shard.model_bytes * fleet.asked.shards), bytes_text(loaded),
      time_text(std::max(shard.open_seconds, loaded / fleet.asked.store_rate)),
      bytes_text(fleet.asked.store_rate));
  text += fmt::format("scaling   {:>7}  {:>15}  {:>9}  {:>8}  {:>7}\n", "devices", "time", "$ for all",
                      "failures", "at work");
  for (size_t i = 0; i < fleet.curve.size(); ++i) {
    const FleetRun& each = fleet.curve[i];
    text += fmt::format("          {:>7}  {:>15}  {:>9}  {:>8}  {:>5.1f} %  {}\n", number_text(each.devices),
                        time_text(each.seconds), money_text(json.at("curve").at(i).at("usd").get<double>()),
                        failures_text(each.failures), 100 * each.efficiency(),
                        std::string(static_cast<size_t>(std::lround(20 * each.efficiency())), '#'));
  }
  if (fleet.stops > 0)
    text += fmt::format("          with {} devices less than half of the paid time is work{}\n",
                        number_text(fleet.stops),
                        fleet.stops > fleet.asked.shards ? ": there are more devices than shards"
                                                         : "; longer shards would help");
  return text;
}

}  // namespace sheaf

#include "io/estimate/estimate_answer.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/files/api_price_file.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

EstimateCase with_phases(EstimateCase asked, bool by_phase) {
  asked.by_phase = by_phase;
  return asked;
}

const EstimateCase& check_fits(const EstimateCase& asked, const HardwareList& list) {
  if (const MemoryPlan memory = plan_memory(asked); !memory.fits())
    refuse("{} does not fit {}: it needs {:.1f} GB for weights, but the device has {:.1f} GB; {}{}",
           asked.model, asked.hardware->name, memory.weights / 1e9, asked.hardware->memory / 1e9,
           fitting_devices(asked, list), fewer_bits_advice(asked));
  return asked;
}

/// The model of all rows; empty where they have several.
std::string one_model(const AskedEstimate& made) {
  const bool several = std::ranges::find(made.axes, "model", &SweepAxis::key) != made.axes.end();
  return several ? "" : made.base.model;
}

}  // namespace

ApiCosts::ApiCosts(const EstimateExtras& extras, const EstimateCase& asked, const SampledRecords& records) {
  if (extras.api.empty()) return;
  prices = read_api_prices(extras.api_file.empty() ? find_api_prices() : extras.api_file, extras.api);
  tokens = count_api_tokens(asked, records);
}

void ApiCosts::add_to(ordered_json& json) const {
  if (!prices.empty()) json["api"] = api_json(prices, tokens);
}

EstimateHead estimate_head(const std::string& model, const AskedEstimate& made) {
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  return {made.inputs.job().file, model, made.inputs.records().whole, today, &made.list};
}

DeviceAnswer::DeviceAnswer(const AskedEstimate& made, const EstimateExtras& extras)
    : asked(check_fits(with_phases(made.base, extras.explain), made.list)),
      estimate(sheaf::estimate(asked, made.inputs.records())),
      best(find_best_packing(asked, made.inputs.records(), estimate.work_seconds)),
      apis(extras, asked, made.inputs.records()),
      head(estimate_head(asked.model, made)),
      in_time(estimate.total_seconds() <= made.within) {
  if (extras.shards > 0) shards = estimate_shards(asked, made.inputs.records(), extras.shards);
}

ordered_json DeviceAnswer::json(const AskedEstimate& made) const {
  ordered_json json = estimate_json(asked, estimate);
  if (shards) json["shards"] = shards_json(*shards);
  json["best"] = best_json(best);
  if (asked.by_phase) json["phases"] = phases_json(estimate.phases, asked.hardware->flops_per_byte());
  if (made.within > 0) json["in_time"] = in_time;
  json["prices_as_of"] = made.list.prices_as_of;
  json["price_months"] = head.price_months();
  if (const auto& reused = made.inputs.reused()) json["reused"] = reused->known;
  apis.add_to(json);
  json["notes"] = made.inputs.notes();
  return json;
}

SweepAnswer::SweepAnswer(const AskedEstimate& made, const EstimateExtras& extras)
    : rows(sweep(made.base, made.inputs.records(), made.list, made.axes, made.within, describe_for_estimate)),
      notes(sweep_notes(made.inputs.notes(), rows, made.inputs.job().cost.usd_per_hour)),
      head(estimate_head(one_model(made), made)) {
  const auto held = std::ranges::find_if(rows, [](const SweepRow& row) { return row.estimate.has_value(); });
  if (held != rows.end())
    apis = ApiCosts(extras, held->asked, made.inputs.records());
  else if (!extras.api.empty())
    refuse("--api: the model fits no device of the list");
}

ordered_json SweepAnswer::json() const {
  ordered_json json = sweep_json(rows, notes);
  json["prices_as_of"] = head.hardware->prices_as_of;
  json["price_months"] = head.price_months();
  apis.add_to(json);
  return json;
}

ordered_json nothing_json(const NothingToDecode& end) {
  return {{"answers", 0}, {"reused", end.known.known}, {"usd", 0.0}};
}

ordered_json estimate_answer(const EstimateAsked& asked, const EstimateExtras& extras) {
  try {
    const AskedEstimate made(asked);
    return made.axes.empty() ? DeviceAnswer(made, extras).json(made) : SweepAnswer(made, extras).json();
  } catch (const NothingToDecode& end) {
    return nothing_json(end);
  }
}

}  // namespace sheaf

#include "app/estimate_show.h"

#include <fmt/ranges.h>
#include <map>

#include "app/terminal.h"
#include "core/base/error.h"
#include "core/estimate/best_packing.h"
#include "core/estimate/estimate_head.h"
#include "core/estimate/shards.h"
#include "core/estimate/sweep.h"
#include "core/text/format.h"
#include "io/base/named_output.h"
#include "io/model/model_config.h"

namespace sheaf {
namespace {

EstimateHead head_of(const std::string& model, const EstimateInputs& inputs, const HardwareList& list) {
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  return {inputs.job().file, model, inputs.records().whole, today, &list};
}

std::vector<std::string> sweep_notes(const EstimateInputs& inputs, const std::vector<SweepRow>& rows) {
  std::vector<std::string> notes = inputs.notes();
  std::map<std::string, std::vector<std::string>> said;  // names by what is said of them
  const auto add = [&](const std::string& text, const std::string& name) {
    std::vector<std::string>& names = said[text];
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  double sampling = 0;
  for (const SweepRow& row : rows) {
    if (!row.estimate) continue;
    add(fmt::format("{}, {}", band_text(row.estimate->device_error),
                    error_text(*row.asked.hardware, row.asked.config)),
        row.asked.hardware->name);
    if (row.estimate->price)
      add(price_text(*row.estimate->price, row.asked.cost.devices), row.asked.hardware->name);
    sampling = std::max(sampling, row.estimate->sampling_error);
  }
  for (const auto& [text, names] : said) notes.push_back(fmt::format("{}: {}", fmt::join(names, ", "), text));
  if (sampling > 0)
    notes.push_back(fmt::format("the sample adds an error of at most {}", band_text(sampling)));
  if (const double usd = inputs.job().cost.usd_per_hour; usd > 0 && rows[0].asked.cost.usd_per_hour == 0)
    notes.push_back(fmt::format(
        "the job's own price, ${:.2f} an hour, is left out; set cost.hardware to the device it is for", usd));
  return notes;
}

}  // namespace

void show_estimate(const ShowOptions& options, const EstimateCase& asked, const EstimateInputs& inputs,
                   const HardwareList& list) {
  if (const MemoryPlan memory = plan_memory(asked); !memory.fits())
    refuse("{} does not fit {}: it needs {:.1f} GB for weights, but the device has {:.1f} GB; {}{}",
           asked.model, asked.hardware->name, memory.weights / 1e9, asked.hardware->memory / 1e9,
           fitting_devices(asked, list), packed_advice(asked));
  const Estimate each = estimate(asked, inputs.records());
  const BestPacking best = find_best_packing(asked, inputs.records(), each.work_seconds);
  const bool in_time = each.total_seconds() <= options.within;
  const double latest = each.most_seconds();
  const EstimateHead head = head_of(asked.model, inputs, list);
  std::optional<ShardsEstimate> shards;
  if (options.shards > 0) shards = estimate_shards(asked, inputs.records(), options.shards);
  if (options.json) {
    nlohmann::ordered_json json = estimate_json(asked, each);
    if (shards) json["shards"] = shards_json(*shards);
    json["best"] = best_json(best);
    if (options.within > 0) json["in_time"] = in_time;
    json["prices_as_of"] = list.prices_as_of;
    json["price_months"] = head.price_months();
    json["notes"] = inputs.notes();
    print_json(json);
  } else {
    print_text(estimate_text(asked, each, head));
    print_line(best_text(asked, each, best));
    if (shards) print_text(shards_text(*shards));
    if (options.within > 0)
      print_line(
          fmt::format("within    {}: {}", time_text(options.within),
                      !in_time ? "too slow"
                      : latest <= options.within
                          ? "in time"
                          : "in time if the estimate is right; at worst it takes " + time_text(latest)));
    for (const std::string& note : inputs.notes()) print_line("note      " + note);
  }
  if (!head.warning().empty()) print_warning(head.warning());
  if (options.html.empty()) return;
  const SweepAxis axis{"hardware", {asked.hardware->name}};
  NamedOutput(options.html)
      .write(sweep_html(head, {axis}, {{axis.values, asked, each, "", ""}}, inputs.notes()));
}

void show_sweep(const ShowOptions& options, const EstimateCase& base, const EstimateInputs& inputs,
                const HardwareList& list, const std::vector<SweepAxis>& axes) {
  const std::vector<SweepRow> rows =
      sweep(base, inputs.records(), list, axes, options.within,
            [](const std::string& name) { return describe_for_estimate(name); });
  const std::vector<std::string> notes = sweep_notes(inputs, rows);
  const bool models = std::ranges::find(axes, "model", &SweepAxis::key) != axes.end();
  const EstimateHead head = head_of(models ? "" : base.model, inputs, list);
  if (options.json) {
    nlohmann::ordered_json json = sweep_json(rows, notes);
    json["prices_as_of"] = list.prices_as_of;
    json["price_months"] = head.price_months();
    print_json(json);
  } else {
    print_text(head.text() + sweep_text(axes, rows));
    for (const std::string& note : notes) print_line("note  " + note);
  }
  if (!head.warning().empty()) print_warning(head.warning());
  if (!options.html.empty()) NamedOutput(options.html).write(sweep_html(head, axes, rows, notes));
}

}  // namespace sheaf

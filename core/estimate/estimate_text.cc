#include <cmath>
#include <fmt/format.h>

#include "core/estimate/sweep.h"
#include "core/methods/method.h"
#include "core/text/format.h"
#include "core/text/printable.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

int percent(double share) {
  return static_cast<int>(std::lround(share * 100));
}

std::string gigabytes(double bytes) {
  return fmt::format("{:.1f} GB", bytes / 1e9);
}

std::string rows_text(int64_t count) {
  return fmt::format("{} row{}", number_text(static_cast<double>(count)), count == 1 ? "" : "s");
}

std::string dollars(const Estimate& each, double usd_per_hour) {
  return fmt::format("{} for all, {} per 1,000 rows", money_range(each, usd_per_hour),
                     money_text(each.per_thousand(each.total_seconds() / 3600 * usd_per_hour)));
}

/// As many digits as an estimate deserves.
std::string rough_money(double usd) {
  if (usd <= 0 || usd >= 10) return "$" + number_text(std::round(usd));
  if (usd < 0.0001) return "<$0.0001";
  return fmt::format("${:.{}f}", usd, usd >= 1 ? 2 : 1 - static_cast<int>(std::floor(std::log10(usd))));
}

std::string packing_text(const Job::Method& method) {
  const std::string_view packing = find_method(method.name).packing;
  if (!packing.empty()) return std::string(packing);
  const int32_t documents = make_builder(method).documents;
  return fmt::format("{} in a prompt of at most {} tokens",
                     documents == 0   ? "as many documents as fit"
                     : documents == 1 ? "1 document"
                                      : fmt::format("{} documents", documents),
                     method.prompt_tokens);
}

int64_t whole(double count) {
  return std::llround(count);
}

ordered_json usd_json(const Estimate& each, double per_hour, double usd) {
  return {{"per_hour", per_hour},
          {"per_1000_rows", each.per_thousand(usd)},
          {"total", usd},
          {"least", each.least_seconds() / 3600 * per_hour},
          {"most", each.most_seconds() / 3600 * per_hour}};
}

ordered_json price_json(const Price& price, int32_t devices) {
  return {{"instance", price.instance->name},
          {"instance_devices", price.instance->devices},
          {"instance_usd_per_hour", price.instance->usd_per_hour},
          {"devices", devices},
          {"share_of_instance", price.share()},
          {"instances", price.instances},
          {"to_rent_usd_per_hour", price.rented_usd_per_hour}};
}

std::string answers_text(const Estimate& each) {
  std::string text =
      fmt::format("{} of {:.1f} tokens", number_text(std::round(each.answers)), each.answer_tokens);
  if (each.findings > 0)
    text += fmt::format(", after {} findings of {:.1f} tokens", number_text(std::round(each.findings)),
                        each.finding_tokens);
  if (each.entry_answers > 0)
    text += fmt::format(", {} of them about entries in later rounds of {} tokens, if every list has {}",
                        number_text(std::round(each.entry_answers)),
                        number_text(std::round(each.entry_tokens)), kExpectedEntries);
  if (each.known_answers >= 1) return text + ", all of them options";
  if (each.known_answers > 0) text += fmt::format(", {} % of them options", percent(each.known_answers));
  return text;
}

std::string packed_text(const EstimateCase& asked, const MemoryPlan& memory) {
  if (!memory.packed) return "";
  return asked.stored_bits > 0 ? " (packed)" : " (packed, assumed to be Q4_K)";
}

}  // namespace

std::string money_range(const Estimate& each, double usd_per_hour) {
  const std::string least = rough_money(each.least_seconds() / 3600 * usd_per_hour);
  const std::string most = rough_money(each.most_seconds() / 3600 * usd_per_hour);
  if (least.starts_with('<') && least != most) return "up to " + most;
  return least == most ? least : least + "–" + most;
}

std::string band_text(double error) {
  return error < 1 ? fmt::format("±{} %", percent(error)) : fmt::format("a factor of {:.0f}", 1 + error);
}

std::string error_text(const Hardware& hardware, const ModelConfig& config) {
  std::string text =
      hardware.borrowed
          ? fmt::format(
                "not measured on this device; computed from the efficiency of {} and this device's peaks",
                hardware.measured_on)
          : fmt::format("steps measured on {}, {}", hardware.measured_on, hardware.measured);
  if (hardware.precision != hardware.wanted)
    text += fmt::format("; the job computes in {}, which was not measured there and is faster",
                        word_of(hardware.wanted));
  if (hardware.fp8_keys != hardware.wanted_fp8_keys)
    text += hardware.fp8_keys
                ? "; that was with keys and values in FP8, whose attention is faster"
                : "; the job keeps keys and values in FP8, whose attention was not measured there";
  if (!hardware.device.measured_experts(config))
    text +=
        "; products of experts were not measured there and are taken to be as efficient as dense ones (sheaf "
        "bench --profile with --shapes of a model with experts measures them)";
  if (hardware.device.is_far(config))
    text += fmt::format(
        "; a size of the model is {:.0f} times beyond those that were measured, where kernel launches and "
        "the "
        "host may dominate",
        hardware.device.distance(config));
  return text;
}

std::string price_text(const Price& price, int32_t devices) {
  const Instance& instance = *price.instance;
  if (price.share())
    return fmt::format(
        "{} of the {} devices of {}, which is rented only as a whole for ${:.2f} an hour (--devices {})",
        devices, instance.devices, instance.name, price.rented_usd_per_hour, instance.devices);
  const int32_t rented = price.instances * instance.devices;
  return fmt::format("{}{}{}, ${:.2f} an hour", instance.name,
                     price.instances > 1 ? fmt::format(" × {}", price.instances) : "",
                     rented > devices ? fmt::format(" with {} devices", rented) : "",
                     price.rented_usd_per_hour);
}

std::string estimate_text(const EstimateCase& asked, const Estimate& each, const EstimateHead& head) {
  const Hardware& hardware = *asked.hardware;
  const MemoryPlan& memory = each.memory;
  std::string text =
      fmt::format("model     {}, {} of weights\n", printable_line(asked.model), gigabytes(memory.weights));
  text +=
      fmt::format("hardware  {}{}\n", asked.cost.devices > 1 ? fmt::format("{} × ", asked.cost.devices) : "",
                  printable_line(hardware.title));
  text += fmt::format("method    {}, {}, {} tokens per step\n", asked.method.name, packing_text(asked.method),
                      memory.tokens_per_step);
  text += fmt::format(
      "memory    fits: {} weights{}, {} per step, {} for keys and values ({} at the peak) of {}\n",
      gigabytes(memory.weights), packed_text(asked, memory), gigabytes(memory.activations),
      gigabytes(memory.pool), gigabytes(each.kv_peak), gigabytes(hardware.memory));
  text += fmt::format("rows      {}\n", number_text(static_cast<double>(each.rows)));
  if (const int64_t longer = each.refused - each.unheld; longer > 0)
    text += fmt::format(
        "too long  {} more: a prompt would need more than {} positions, so they are neither answered nor "
        "priced; to include them, use {}\n",
        rows_text(longer), number_text(asked.config.context),
        find_method(asked.method.name).wording.one_by_one
            ? "a model with a longer context or shorter documents"
            : "input.too_long: truncate or split");
  if (each.unheld > 0)
    text += fmt::format(
        "too long  {} more: keys and values do not fit in {}, so they are neither answered nor priced; {}\n",
        rows_text(each.unheld), gigabytes(memory.pool), memory_advice(asked));
  if (each.rejected > 0) text += fmt::format("rejects   {} that cannot be used\n", rows_text(each.rejected));
  text += fmt::format("answers   {}\n", answers_text(each));
  text += fmt::format("tokens    {} computed in {} steps{}", number_text(std::round(each.tokens)),
                      number_text(std::round(each.steps)), asked.cost.devices > 1 ? " on each device" : "");
  if (each.tokens_alone > 0)
    text += fmt::format("; with one prompt per question {} ({:.1f}x)",
                        number_text(std::round(each.tokens_alone)), each.tokens_alone / each.tokens);
  text += fmt::format(
      "\ntime      {} in all: load the model {}, read prompts {}, write answers {}, wait for the host {}\n",
      time_text(each.total_seconds()), time_text(each.open_seconds), time_text(each.prefill_seconds()),
      time_text(each.decode_seconds + each.stages.pick), time_text(each.host_seconds));
  text += fmt::format("speed     {} rows/s, {} answers/s\n", number_text(each.rows_per_second()),
                      number_text(each.answers_per_second()));
  if (each.job_usd_per_hour > 0)
    text += fmt::format("cost      {} at the job's own price, ${:.2f} an hour\n",
                        dollars(each, each.job_usd_per_hour), each.job_usd_per_hour);
  if (each.price)
    text += fmt::format("cost      {} at {}\nprice     {}\n", dollars(each, each.usd_per_hour()),
                        printable_line(head.prices_name()),
                        printable_line(price_text(*each.price, asked.cost.devices)));
  text += fmt::format("error     {}: ", band_text(each.error));
  if (each.sampling_error > 0)
    text += fmt::format("{} from the sample, {} from the device; ", band_text(each.sampling_error),
                        band_text(each.device_error));
  return text + printable_line(error_text(hardware, asked.config)) + "\n";
}

ordered_json case_json(const EstimateCase& asked, int32_t tokens_per_step) {
  return {{"model", asked.model},
          {"hardware", asked.hardware->name},
          {"method", asked.method.name},
          {"documents", asked.method.documents},
          {"prompt_tokens", asked.method.prompt_tokens},
          {"tokens_per_step", tokens_per_step}};
}

ordered_json estimate_json(const EstimateCase& asked, const Estimate& each) {
  const Hardware& hardware = *asked.hardware;
  const MemoryPlan& memory = each.memory;
  ordered_json stages;
  for (const NamedStage& stage : kStages) stages[stage.name] = each.stages.*stage.seconds;
  ordered_json json = case_json(asked, memory.tokens_per_step);
  json.update({{"prompts", asked.engine.prompts},
               {"devices", asked.cost.devices},
               {"rows", each.rows},
               {"records_too_long", each.refused},
               {"records_too_long_for_memory", each.unheld},
               {"records_rejected", each.rejected},
               {"answers", whole(each.answers)},
               {"tokens_an_answer", each.answer_tokens},
               {"tokens_computed", whole(each.tokens)},
               {"tokens_one_prompt_per_question", whole(each.tokens_alone)},
               {"steps_per_device", whole(each.steps)},
               {"seconds",
                {{"total", each.total_seconds()},
                 {"open", each.open_seconds},
                 {"work", each.work_seconds},
                 {"prefill", each.prefill_seconds()},
                 {"decode", each.decode_seconds},
                 {"pick", each.stages.pick},
                 {"host", each.host_seconds}}},
               {"device_seconds", stages},
               {"weights_packed", memory.packed},
               {"memory_gb",
                {{"weights", memory.weights / 1e9},
                 {"step", memory.activations / 1e9},
                 {"kv_pool", memory.pool / 1e9},
                 {"kv_peak", each.kv_peak / 1e9},
                 {"device", hardware.memory / 1e9}}},
               {"rows_per_second", each.rows_per_second()},
               {"answers_per_second", each.answers_per_second()},
               {"error", each.error},
               {"error_of_device", each.device_error},
               {"error_of_sample", each.sampling_error},
               {"measured_on", hardware.measured_on},
               {"borrowed", hardware.borrowed}});
  if (each.findings > 0) {
    json["findings"] = whole(each.findings);
    json["tokens_a_finding"] = each.finding_tokens;
  }
  if (each.entry_answers > 0)
    json["entries"] = {{"assumed", kExpectedEntries},
                       {"answers", whole(each.entry_answers)},
                       {"tokens_computed", whole(each.entry_tokens)}};
  if (each.price) {
    json["usd"] = usd_json(each, each.usd_per_hour(), each.usd());
    json["price"] = price_json(*each.price, asked.cost.devices);
  }
  if (each.job_usd_per_hour > 0)
    json["usd_at_job_price"] = usd_json(each, each.job_usd_per_hour, each.job_usd());
  return json;
}

}  // namespace sheaf

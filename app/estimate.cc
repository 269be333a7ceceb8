#include "core/estimate/estimate.h"

#include "app/job_options.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/estimate/api_cost.h"
#include "core/estimate/sweep.h"
#include "core/methods/method.h"
#include "core/text/format.h"
#include "core/text/spelling.h"
#include "io/base/named_output.h"
#include "io/estimate/inputs.h"
#include "io/files/api_price_file.h"

namespace sheaf {
namespace {

struct EstimateOptions : EstimateAsked {
  std::string html;      ///< a page to write too; empty: none
  std::string api;       ///< models of services to compare with; empty: none
  std::string api_file;  ///< their prices; empty: the installed ones
  int32_t shards = 0;    ///< of an array of them; 0: not asked for
  bool explain = false;  ///< FLOPs and bytes of each phase
  bool json = false;
};

EstimateHead head_of(const std::string& model, const AskedEstimate& made) {
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  return {made.inputs.job().file, model, made.inputs.records().whole, today, &made.list};
}

/// Warns of old prices, and writes the page.
void finish(const EstimateOptions& options, const EstimateHead& head, const std::vector<SweepAxis>& axes,
            const std::vector<SweepRow>& rows, const std::vector<std::string>& notes) {
  if (!head.warning().empty()) print_warning(head.warning());
  if (!options.html.empty()) NamedOutput(options.html).write(sweep_html(head, axes, rows, notes));
}

/// What services would charge for the job. `asked`: on a device that holds the model.
struct ApiCosts {
  std::vector<ApiPrice> prices;  ///< none: nobody asked
  ApiTokens tokens = {};

  ApiCosts(const EstimateOptions& options, const EstimateCase& asked, const SampledRecords& records) {
    if (options.api.empty()) return;
    prices = read_api_prices(options.api_file.empty() ? find_api_prices() : options.api_file, options.api);
    tokens = count_api_tokens(asked, records);
  }
  void add_to(nlohmann::ordered_json& json) const {
    if (!prices.empty()) json["api"] = api_json(prices, tokens);
  }
  void print() const {
    if (!prices.empty()) print_text(api_text(prices, tokens));
  }
};

/// One device in detail, with the best setting on it. Refuses a model that it cannot hold.
void show_estimate(const EstimateOptions& options, const AskedEstimate& made) {
  EstimateCase asked = made.base;
  asked.by_phase = options.explain;
  const double balance = asked.hardware->flops_per_byte();
  const std::vector<std::string>& notes = made.inputs.notes();
  if (const MemoryPlan memory = plan_memory(asked); !memory.fits())
    refuse("{} does not fit {}: it needs {:.1f} GB for weights, but the device has {:.1f} GB; {}{}",
           asked.model, asked.hardware->name, memory.weights / 1e9, asked.hardware->memory / 1e9,
           fitting_devices(asked, made.list), fewer_bits_advice(asked));
  const Estimate each = estimate(asked, made.inputs.records());
  const BestPacking best = find_best_packing(asked, made.inputs.records(), each.work_seconds);
  const bool in_time = each.total_seconds() <= made.within;
  const double latest = each.most_seconds();
  const EstimateHead head = head_of(asked.model, made);
  const ApiCosts apis(options, asked, made.inputs.records());
  std::optional<ShardsEstimate> shards;
  if (options.shards > 0) shards = estimate_shards(asked, made.inputs.records(), options.shards);
  if (options.json) {
    nlohmann::ordered_json json = estimate_json(asked, each);
    if (shards) json["shards"] = shards_json(*shards);
    json["best"] = best_json(best);
    if (options.explain) json["phases"] = phases_json(each.phases, balance);
    if (made.within > 0) json["in_time"] = in_time;
    json["prices_as_of"] = made.list.prices_as_of;
    json["price_months"] = head.price_months();
    if (const auto& reused = made.inputs.reused()) json["reused"] = reused->known;
    apis.add_to(json);
    json["notes"] = notes;
    print_json(json);
  } else {
    print_text(estimate_text(asked, each, head));
    print_line(best_text(asked, each, best));
    if (shards) print_text(shards_text(*shards));
    apis.print();
    if (made.within > 0)
      print_line(
          fmt::format("within    {}: {}", time_text(made.within),
                      !in_time ? "too slow"
                      : latest <= made.within
                          ? "in time"
                          : "in time if the estimate is right; at worst it takes " + time_text(latest)));
    for (const std::string& note : notes) print_line("note      " + note);
    if (options.explain) print_text("\n" + phases_text(each.phases, balance));
  }
  const SweepAxis axis{"hardware", {asked.hardware->name}};
  finish(options, head, {axis}, {{axis.values, asked, each, "", ""}}, notes);
}

void show_sweep(const EstimateOptions& options, const AskedEstimate& made) {
  const std::vector<SweepAxis>& axes = made.axes;
  const std::vector<SweepRow> rows =
      sweep(made.base, made.inputs.records(), made.list, axes, made.within, describe_for_estimate);
  const std::vector<std::string> notes =
      sweep_notes(made.inputs.notes(), rows, made.inputs.job().cost.usd_per_hour);
  const bool models = std::ranges::find(axes, "model", &SweepAxis::key) != axes.end();
  const EstimateHead head = head_of(models ? "" : made.base.model, made);
  const auto held = std::ranges::find_if(rows, [](const SweepRow& row) { return row.estimate.has_value(); });
  if (held == rows.end() && !options.api.empty()) refuse("--api: the model fits no device of the list");
  const ApiCosts apis(held == rows.end() ? EstimateOptions() : options,
                      held == rows.end() ? made.base : held->asked, made.inputs.records());
  if (options.json) {
    nlohmann::ordered_json json = sweep_json(rows, notes);
    json["prices_as_of"] = made.list.prices_as_of;
    json["price_months"] = head.price_months();
    apis.add_to(json);
    print_json(json);
  } else {
    print_text(head.text() + sweep_text(axes, rows));
    apis.print();
    for (const std::string& note : notes) print_line("note  " + note);
  }
  finish(options, head, axes, rows, notes);
}

void run(const EstimateOptions& options) {
  if (options.api.empty() && !options.api_file.empty())
    refuse("--api-file works only with --api, which names the models, or all");
  if (!options.html.empty()) NamedOutput(options.html, {options.job});  // before the work, not after it
  std::optional<AskedEstimate> asked;
  try {
    asked.emplace(options);
  } catch (const NothingToDecode& end) {
    if (options.json)
      print_json({{"answers", 0}, {"reused", end.known.known}, {"usd", 0.0}});
    else
      print_line(fmt::format("nothing to decode: all {} are known from {}",
                             counted(end.known.answers, "answer"), end.from));
    return;
  }
  const AskedEstimate& made = *asked;
  if (made.axes.empty()) return show_estimate(options, made);
  if (options.shards > 0)
    refuse(
        "--shards {} works only with one device and without a sweep; add --hardware with one name, such as "
        "{}",
        options.shards, made.list.devices.front().name);
  if (options.explain)
    refuse(
        "--explain works only with one device and without a sweep; add --hardware with one name, such as {}",
        made.list.devices.front().name);
  show_sweep(options, made);
}

}  // namespace

void add_estimate_command(Program& program) {
  auto options = std::make_shared<EstimateOptions>();
  RecordStatistics& lengths = options->statistics;
  const Trait a_length = number_from(kLengths.least, kLengths.most);
  add_command(
      program, "estimate",
      "Estimate how long a job takes and what it costs, for one device or several; needs no weights and no "
      "GPU",
      {{"JOB", options->job,
        "The job file; its estimate section can set the options below. Not needed with "
        "--workload or --document-tokens"},
       set_option(options->overrides,
                  "Override a key of the job: --set method.documents=4 (may be repeated)"),
       {"--dtype", options->dtype, "The type to compute in (model.dtype)", one_of(all_words<Precision>())},
       {"--packed", options->packed,
        "Keep weights on the GPU as the model's file has them; a shape's are assumed to be Q4_K "
        "(model.weights: packed)"},
       {"--model", options->model,
        "Use this model instead of the job's: a shape such as qwen3-8b, a config.json, a "
        "folder or a GGUF file",
        value_name("MODEL")},
       {"--hardware", options->hardware,
        "Devices from the list, separated by commas; one is shown in detail (default: compare all GPUs)",
        value_name("NAME")},
       {"--hardware-file", options->hardware_file,
        "The list of devices (default: configs/hardware.yaml here, otherwise the installed one)"},
       {"--devices", options->devices, "Devices that share the corpus (default: the job's cost.devices)",
        whole_from(1, 100000)},
       {"--shards", options->shards, "Also estimate the job as an array of this many shards on the devices",
        whole_from(1, 100000)},
       {"--method", options->method, "Use this method instead of the job's", one_of(method_names())},
       {"--documents", options->documents, "Documents per prompt (0: as many as fit)", whole_from(0)},
       {"--prompt-tokens", options->prompt_tokens, "The most tokens in a prompt", whole_from(1)},
       {"--tokens-per-step", options->tokens_per_step, "Tokens per step", whole_from(1)},
       {"--sample", options->sample,
        "Records of the corpus to sample (default: 512, or fewer if they are long)", whole_from<int64_t>(1)},
       {"--records,--rows", options->records, "Records in the whole corpus (default: counted)",
        whole_from<int64_t>(1)},
       {"--answer-tokens", lengths.answer,
        "Assumed length of a free answer (default: 8; chat: as long as allowed)", a_length},
       {"--tokens-per-byte", options->tokens_per_byte,
        "Tokens per byte of text to assume if the model has no tokenizer (default: 0.25)",
        number_from(0.01, 4)},
       reuse_options(options->reuse),
       {"--workload", options->workload, "Estimate a workload file of `sheaf bench`"},
       {"--document-tokens", lengths.document, "Made-up records: mean tokens per document", a_length},
       {"--documents-per-record,--documents-per-row", lengths.documents,
        "Made-up records: documents per record (default: 1); pced, ape and map-reduce read "
        "them one by one",
        number_from(kDocuments.least, kDocuments.most)},
       {"--questions", lengths.questions,
        "Made-up records: questions per document (default: 1; extract: the schema's)", a_length},
       {"--question-tokens", lengths.question, "Made-up records: tokens per question (default: 12)",
        a_length},
       {"--instruction-tokens", lengths.instruction,
        "Made-up records: tokens in the instruction (default: the job's)", number_from(0, kLengths.most)},
       {"--sweep", options->sweeps,
        "Compare settings: KEY=VALUE,VALUE; KEY is method, model, hardware, documents, prompt_tokens, "
        "tokens_per_step, prompts or devices (may be repeated)",
        kRepeatable, value_name("KEY=VALUES")},
       {"--within", options->within, "Mark the cheapest choice that takes at most this long: 2h, 90m, 30s",
        value_name("TIME")},
       {"--explain", options->explain,
        "Also print FLOPs, bytes and FLOPs per byte of each phase; with one --hardware"},
       {"--api", options->api,
        "Also show what services would charge for the same answers: names in configs/api-prices.yaml with "
        "commas between them, or all",
        value_name("NAMES")},
       {"--api-file", options->api_file,
        "The list of API prices (default: api-prices.yaml beside the devices)"},
       {"--html", options->html, "Also write the comparison to this HTML file"},
       {"--json", options->json, "Print the result as JSON"}},
      [options] { run(*options); });
}

}  // namespace sheaf

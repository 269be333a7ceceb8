#include "core/estimate/estimate.h"

#include "app/job_options.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/methods/method.h"
#include "core/text/format.h"
#include "core/text/spelling.h"
#include "io/base/named_output.h"
#include "io/estimate/estimate_answer.h"

namespace sheaf {
namespace {

struct EstimateOptions : EstimateAsked {
  EstimateExtras extras;
  std::string html;  ///< a page to write too; empty: none
  bool json = false;
};

/// Warns of old prices, and writes the page.
void finish(const EstimateOptions& options, const EstimateHead& head, const std::vector<SweepAxis>& axes,
            const std::vector<SweepRow>& rows, const std::vector<std::string>& notes) {
  if (!head.warning().empty()) print_warning(head.warning());
  if (!options.html.empty()) NamedOutput(options.html).write(sweep_html(head, axes, rows, notes));
}

void print(const ApiCosts& apis) {
  if (!apis.prices.empty()) print_text(api_text(apis.prices, apis.tokens));
}

std::string within_text(double within, const DeviceAnswer& made) {
  const double latest = made.estimate.most_seconds();
  return fmt::format("within    {}: {}", time_text(within),
                     !made.in_time ? "too slow"
                     : latest <= within
                         ? "in time"
                         : "in time if the estimate is right; at worst it takes " + time_text(latest));
}

/// One device in detail, with the best setting on it.
void show_estimate(const EstimateOptions& options, const AskedEstimate& made) {
  const DeviceAnswer answer(made, options.extras);
  const std::vector<std::string>& notes = made.inputs.notes();
  if (options.json) {
    print_json(answer.json(made));
  } else {
    print_text(estimate_text(answer.asked, answer.estimate, answer.head));
    print_line(best_text(answer.asked, answer.estimate, answer.best));
    if (answer.shards) print_text(shards_text(*answer.shards));
    print(answer.apis);
    if (made.within > 0) print_line(within_text(made.within, answer));
    for (const std::string& note : notes) print_line("note      " + note);
    if (options.extras.explain)
      print_text("\n" + phases_text(answer.estimate.phases, answer.asked.hardware->flops_per_byte()));
  }
  const SweepAxis axis{"hardware", {answer.asked.hardware->name}};
  finish(options, answer.head, {axis}, {{axis.values, answer.asked, answer.estimate, "", ""}}, notes);
}

void show_sweep(const EstimateOptions& options, const AskedEstimate& made) {
  const SweepAnswer answer(made, options.extras);
  if (options.json) {
    print_json(answer.json());
  } else {
    print_text(answer.head.text() + sweep_text(made.axes, answer.rows));
    print(answer.apis);
    for (const std::string& note : answer.notes) print_line("note  " + note);
  }
  finish(options, answer.head, made.axes, answer.rows, answer.notes);
}

void run(const EstimateOptions& options) {
  if (options.extras.api.empty() && !options.extras.api_file.empty())
    refuse("--api-file works only with --api, which names the models, or all");
  if (!options.html.empty()) NamedOutput(options.html, {options.job});  // before the work, not after it
  std::optional<AskedEstimate> asked;
  try {
    asked.emplace(options);
  } catch (const NothingToDecode& end) {
    if (options.json)
      print_json(nothing_json(end));
    else
      print_line(fmt::format("nothing to decode: all {} are known from {}",
                             counted(end.known.answers, "answer"), end.from));
    return;
  }
  const AskedEstimate& made = *asked;
  if (made.axes.empty()) return show_estimate(options, made);
  if (options.extras.shards > 0)
    refuse(
        "--shards {} works only with one device and without a sweep; add --hardware with one name, such as "
        "{}",
        options.extras.shards, made.list.devices.front().name);
  if (options.extras.explain)
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
       {"--shards", options->extras.shards,
        "Also estimate the job as an array of this many shards on the devices", whole_from(1, 100000)},
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
       {"--explain", options->extras.explain,
        "Also print FLOPs, bytes and FLOPs per byte of each phase; with one --hardware"},
       {"--api", options->extras.api,
        "Also show what services would charge for the same answers: names in configs/api-prices.yaml with "
        "commas between them, or all",
        value_name("NAMES")},
       {"--api-file", options->extras.api_file,
        "The list of API prices (default: api-prices.yaml beside the devices)"},
       {"--html", options->html, "Also write the comparison to this HTML file"},
       {"--json", options->json, "Print the result as JSON"}},
      [options] { run(*options); });
}

}  // namespace sheaf

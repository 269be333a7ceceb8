#include <filesystem>
#include <fmt/ranges.h>
#include <optional>

#include "app/job_options.h"
#include "app/progress.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/base/named_output.h"
#include "io/jobs/discover_job.h"

namespace sheaf {
namespace {

struct DiscoverOptions : JobOptions {
  std::string out;
  DiscoverSettings settings;
};

std::string categories_text(int64_t count) {
  return count == 1 ? "1 category" : fmt::format("{} categories", count);
}

void print(const DiscoverOptions& options, const DiscoverEnd& end, int64_t attributes) {
  if (options.json) {
    nlohmann::ordered_json out = end.json();
    if (options.out.empty())
      out["schema"] = end.schema;
    else
      out["path"] = options.out;
    return print_json(out);
  }
  if (options.out.empty()) return print_text(end.schema);
  if (options.quiet) return;
  print_line(fmt::format("{} of {} in {}; edit it, and name it as task.schema",
                         counted(attributes, "attribute"), categories_text(std::ssize(end.categories)),
                         options.out));
}

int discover(const DiscoverOptions& options) {
  stop_in_order();
  outlive_readers();
  const Job job = options.read({.needs_schema = false});
  std::optional<NamedOutput> file;
  if (!options.out.empty()) {
    if (!options.out.ends_with(".yaml") && !options.out.ends_with(".yml"))
      refuse("{}: the name of a schema file must end in .yaml", options.out);
    std::error_code ignored;
    if (std::filesystem::exists(options.out, ignored))
      refuse("{} exists; name another file, or remove it", options.out);
    file.emplace(options.out);
  }
  ShownRun shown(options.quiet || options.json);
  const DiscoverEnd end = discover_attributes(job, options.settings, shown);
  if (!end.interrupted.empty()) {
    print_note(end.interrupted);
    return 130;
  }
  int64_t attributes = 0;
  for (const DiscoveredCategory& each : end.categories) attributes += std::ssize(each.attributes);
  if (file) file->write(end.schema);
  const std::vector<std::string> troubles = end.troubles();
  for (const std::string& trouble : troubles) print_note(trouble);
  if (end.further_categories > 0)
    print_note(fmt::format("{} with fewer products not asked about; --categories sets how many are",
                           categories_text(end.further_categories)));
  print(options, end, attributes);
  return troubles.empty() ? 0 : 1;
}

}  // namespace

void add_discover_command(Program& program) {
  auto options = std::make_shared<DiscoverOptions>();
  DiscoverSettings& settings = options->settings;
  add_command(
      program, "discover",
      "Ask a model which attributes the products of each category have, by a sample of them, and write "
      "a schema file to edit",
      {options->arguments(),
       {"OUT", options->out, "The schema file to write, a new one: OUT.yaml (default: print it)"},
       {"--products", settings.products, "Show the model at most N products of a category",
        whole_from<int32_t>(1, 1000), kWithDefault},
       {"--together", settings.together, "Products per prompt", whole_from<int32_t>(1, 100), kWithDefault},
       {"--attributes", settings.attributes, "Keep at most N attributes of a category",
        whole_from<int32_t>(1, 100), kWithDefault},
       {"--categories", settings.categories, "Ask about at most N categories, those with the most products",
        whole_from<int32_t>(1, 10000), kWithDefault},
       {"--reply-tokens", settings.reply_tokens, "Most tokens of a reply", whole_from<int32_t>(16, 32768),
        kWithDefault},
       seed_option(settings.seed, "The seed of the sample of products"),
       {"--model", settings.model, "Ask this model (default: the job's, without its adapter)",
        value_name("MODEL")},
       {"--prompt", settings.prompt,
        "A YAML file with other words to ask with (configs/papers/prompts/hpd-figure-10.yaml)"},
       {"--work", settings.work,
        "Where the requests and the model's replies are kept (default: output.path.discover)",
        value_name("FOLDER")}},
      [options] { return discover(*options); })
      .footer("task.schema may be missing in the job, or name the file that is to be written.");
}

}  // namespace sheaf

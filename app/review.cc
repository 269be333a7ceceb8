#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <memory>

#include "app/commands.h"
#include "app/option_checks.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "io/base/named_output.h"
#include "io/jobs/review_job.h"

namespace sheaf {
namespace {

struct ReviewOptions {
  ReviewSettings settings;
  std::string out;
};

void review(const ReviewOptions& options) {
  const std::string out = options.out.empty() ? options.settings.run + "/review.html" : options.out;
  if (!out.ends_with(".html")) refuse("--out: {} must end in .html", out);
  const ReviewPage page = make_review(options.settings);
  NamedOutput(out, page.read).write(page.html);
  print_line(fmt::format("{} of {}, {}", counted(page.values, "value"), counted(page.records, "record"),
                         page.by_sureness ? "least sure first" : "drawn at random"));
  if (page.values < page.strata)
    print_note(
        fmt::format("the sample shows only {} of {} attributes (counted per category); use --count {} to see "
                    "each once",
                    page.values, page.strata, page.strata));
  print_line(fmt::format("review  {}: open it in a browser", out));
}

}  // namespace

void add_review_command(CLI::App& app) {
  auto options = std::make_shared<ReviewOptions>();
  ReviewSettings& settings = options->settings;
  CLI::App* command = app.add_subcommand(
      "review",
      "Write a page on which a person checks values of a run and downloads the verdicts as a gold file");
  command->add_option("RUN", settings.run, "The output folder of a finished run of an extract job")
      ->type_name("FOLDER")
      ->required();
  command->add_option("-o,--out", options->out,
                      "The page to write (default: review.html in the run's folder)");
  command->add_option("--count", settings.count, "How many values to check")
      ->check(whole_from<int64_t>(1, 100'000))
      ->capture_default_str();
  command
      ->add_option("--attributes", settings.attributes,
                   "Check these attributes only: --attributes Brand,Size")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAMES");
  command->add_option("--seed", settings.seed, "Seed of the sample")
      ->check(whole_from<uint64_t>(0))
      ->capture_default_str();
  command->add_option("--input", settings.input,
                      "Where the run's corpus is now, if it was moved or came from standard input");
  command->add_option("--schema", settings.schema, "Where the run's schema is now, if it was moved");
  command->callback([options] { review(*options); });
}

}  // namespace sheaf

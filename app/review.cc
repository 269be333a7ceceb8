#include "app/job_options.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/base/mapped_file.h"
#include "io/base/named_output.h"
#include "io/jobs/finished_run.h"

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
  if (!page.repeated.empty())
    print_note(fmt::format(
        "{} with the id of an earlier row left out, because the gold file goes by ids ({}{}); to review "
        "them, run the job with an input.id that tells records apart",
        counted(std::ssize(page.repeated), "row"), shown(page.repeated.front()),
        page.repeated.size() > 1 ? ", …" : ""));
  print_line(fmt::format("review  {}: open it in a browser", out));
}

}  // namespace

void add_review_command(Program& program) {
  auto options = std::make_shared<ReviewOptions>();
  ReviewSettings& settings = options->settings;
  add_command(
      program, "review",
      "Write a page on which a person checks values of a run and downloads the verdicts as a gold file",
      {{"RUN", settings.run, "The output folder of a finished run of an extract or ask job",
        value_name("FOLDER"), kRequired},
       {"-o,--out", options->out, "The page to write (default: review.html in the run's folder)"},
       {"--count", settings.count, "How many values to check", whole_from<int64_t>(1, 100'000), kWithDefault},
       {"--attributes", settings.attributes, "Check these attributes only: --attributes Brand,Size",
        kInCommas, kRepeatable, value_name("NAMES")},
       seed_option(settings.seed, "Seed of the sample"),
       place_options(settings)},
      [options] { review(*options); });
}

}  // namespace sheaf

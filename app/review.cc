#include "app/job_options.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/base/mapped_file.h"
#include "io/base/named_output.h"
#include "io/eval/pair_review.h"
#include "io/jobs/finished_run.h"

namespace sheaf {
namespace {

struct ReviewOptions {
  ReviewSettings settings;
  std::string out;
  std::string against, verdicts;
  bool json = false;
};

void note_repeated(const std::vector<std::string>& repeated, const char* file) {
  if (repeated.empty()) return;
  print_note(fmt::format(
      "{} with the id of an earlier row left out, because the {} goes by ids ({}{}); to review "
      "them, run the job with an input.id that tells records apart",
      counted(std::ssize(repeated), "row"), file, shown(repeated.front()), repeated.size() > 1 ? ", …" : ""));
}

void write_page(const std::string& out, const std::vector<std::string>& read, const std::string& html) {
  NamedOutput(out, read).write(html);
}

void review_run(const ReviewSettings& settings, const std::string& out) {
  const ReviewPage page = make_review(settings);
  write_page(out, page.read, page.html);
  print_line(fmt::format("{} of {}, {}", counted(page.values, "value"), counted(page.records, "record"),
                         page.by_sureness ? "least sure first" : "drawn at random"));
  if (page.values < page.strata)
    print_note(
        fmt::format("the sample shows only {} of {} attributes (counted per category); use --count {} to see "
                    "each once",
                    page.values, page.strata, page.strata));
  note_repeated(page.repeated, "gold file");
  print_line(fmt::format("review  {}: open it in a browser", out));
}

void review_pair(const PairSettings& settings, const std::string& out) {
  const PairPage page = make_pair_page(settings);
  write_page(out, page.read, page.html);
  print_line(fmt::format("{} to judge, of {} about which the runs differ; about {} they say the same",
                         page.items, page.differ, page.equal));
  if (page.unshared > 0)
    print_note(fmt::format("{} left out, which only one of the runs has", counted(page.unshared, "item")));
  if (page.other_corpus)
    print_note(
        fmt::format("the runs read different files; the page shows the documents of {}", settings.run));
  note_repeated(page.repeated, "file of verdicts");
  print_line(fmt::format("review  {}: open it in a browser", out));
}

void tell_verdicts(const ReviewOptions& options, const PairSettings& pair) {
  const Preference said = count_verdicts(pair, options.verdicts);
  if (options.json)
    print_json(preference_json(said, pair.run, pair.against));
  else
    print_text(preference_text(said, pair.run, pair.against));
}

void review(const ReviewOptions& options) {
  const ReviewSettings& run = options.settings;
  const PairSettings pair{run, options.against, run.attributes, run.count, run.seed};
  if (!options.verdicts.empty()) return tell_verdicts(options, pair);
  const bool two = !options.against.empty();
  const std::string out =
      options.out.empty() ? run.run + (two ? "/side-by-side.html" : "/review.html") : options.out;
  if (!out.ends_with(".html")) refuse("--out: {} must end in .html", out);
  two ? review_pair(pair, out) : review_run(run, out);
}

}  // namespace

void add_review_command(Program& program) {
  auto options = std::make_shared<ReviewOptions>();
  ReviewSettings& settings = options->settings;
  add_command(
      program, "review",
      "Write a page on which a person checks values of a run, or says which of two runs is better",
      {{"RUN", settings.run, "The output folder of a finished run of an extract or ask job",
        value_name("FOLDER"), kRequired},
       {"OTHER", options->against,
        "Another run over the same records: the page shows both side by side and does not say which is which",
        value_name("FOLDER")},
       {"-o,--out", options->out,
        "The page to write (default: in RUN, review.html or, of two runs, side-by-side.html)"},
       {"--count", settings.count, "How many values to check, or records or questions to compare",
        whole_from<int64_t>(1, 100'000), kWithDefault},
       {"--attributes", settings.attributes, "Check these attributes only: --attributes Brand,Size",
        kInCommas, kRepeatable, value_name("NAMES")},
       {"--verdicts", options->verdicts,
        "Write no page, but say what this file says of the two runs, which their page saved",
        value_name("FILE"), works_with("OTHER")},
       {"--json", options->json, "With --verdicts: print one JSON object", works_with("--verdicts")},
       seed_option(settings.seed, "Seed of the sample and of the sides"),
       place_options(settings)},
      [options] { review(*options); });
}

}  // namespace sheaf

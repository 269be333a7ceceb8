#include <algorithm>
#include <fmt/format.h>

#include "app/job_options.h"
#include "app/terminal.h"
#include "core/report/values_text.h"
#include "core/text/printable.h"
#include "core/text/spelling.h"
#include "core/text/wrap.h"
#include "io/jobs/finished_run.h"

namespace sheaf {
namespace {

struct ShowOptions {
  ShowSettings settings;
  bool json = false;
};

void show(const ShowOptions& options) {
  const ShownRows shown = show_rows(options.settings);
  if (options.json) {
    for (const ShownRow& row : shown.rows) print_json(shown_json(row), -1);
    return;
  }
  const auto columns = static_cast<size_t>(std::clamp(terminal_columns(Stream::out), 40, 160));
  for (const ShownRow& row : shown.rows) {
    print_line(row.asks ? fmt::format("── {}", row.id)
                        : fmt::format("── {} · {}", row.id, row.values.category));
    print_text(side_by_side(printable_text(row.document), printable_text(values_text(row.values)), columns) +
               "\n");
  }
  print_line(fmt::format("{} of {}{}", std::ssize(shown.rows), counted(shown.matching, "row"),
                         shown.unfinished ? " that the run has so far; it is not finished" : ""),
             Stream::err);
}

}  // namespace

void add_show_command(Program& program) {
  auto options = std::make_shared<ShowOptions>();
  ShowSettings& settings = options->settings;
  add_command(
      program, "show", "Print rows of a run beside their documents: `sheaf show RUN --where Brand=null`",
      {{"RUN", settings.run,
        "The output folder of a run of an extract or ask job; of an unfinished one, what is committed",
        value_name("FOLDER"), kRequired},
       {"--sample", settings.sample, "How many rows to show, drawn at random",
        whole_from<int64_t>(1, 100'000), kWithDefault},
       {"--category", settings.category, "Only rows of this category", value_name("NAME")},
       {"--where", settings.where,
        "Only rows with this value, as the row has it, or with a list that holds it: Brand=null, "
        "Specialty=organic, variants[2].price=4.5, variants[].price=null; of an ask job: answer=null",
        value_name("ATTRIBUTE=VALUE")},
       seed_option(settings.seed, "Seed of the sample"),
       place_options(settings),
       {"--json", options->json, "Print JSON lines"}},
      [options] { show(*options); });
}

}  // namespace sheaf

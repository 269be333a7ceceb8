#include <ctime>

#include "app/commands.h"
#include "app/terminal.h"
#include "io/jobs/run_status.h"

namespace sheaf {

void add_status_command(Program& program) {
  struct Options {
    std::vector<std::string> runs;
    bool all = false, json = false;
  };
  auto options = std::make_shared<Options>();
  add_command(
      program, "status",
      "Show how far runs are, also while they are running: rows, rate, time left, cost, and which part "
      "of a job is late",
      {{"RUN", options->runs,
        "Output folders of runs, or a folder that holds them, such as the parts of `sheaf run --shard`",
        value_name("FOLDER"), kRequired},
       {"--all", options->all, "A line for every run; of many, finished ones are left out otherwise"},
       {"--json", options->json, "Print the result as JSON"}},
      [options] {
        const StatusTable table = read_status(options->runs, std::time(nullptr));
        if (options->json)
          print_json(status_json(table));
        else
          print_text(status_text(table, options->all));
      });
}

}  // namespace sheaf

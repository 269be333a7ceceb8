#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <memory>

#include "app/commands.h"
#include "app/terminal.h"
#include "core/text/format.h"
#include "core/text/spelling.h"
#include "io/run_folder/check_run.h"

namespace sheaf {

void add_verify_run_command(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand(
      "verify-run",
      "Check that a finished run is whole: compare every byte of its rows and rejects with its manifest");
  auto run = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("RUN", *run, "The output folder of a run, or the URI it was published to")
      ->type_name("FOLDER|URI")
      ->required();
  command->add_flag("--json", *json, "Print JSON");
  command->callback([run, json, &exit_code] {
    const RunCheck check = check_run(*run);
    exit_code = check.troubles.empty() ? 0 : 2;
    if (*json) {
      print_json({{"run", *run},
                  {"whole", check.troubles.empty()},
                  {"rows", check.rows},
                  {"rejects", check.rejects},
                  {"files", check.files},
                  {"bytes", check.bytes},
                  {"troubles", check.troubles}});
      return;
    }
    for (const std::string& trouble : check.troubles) print_line(trouble);
    if (check.troubles.empty())
      print_line(fmt::format("{}: whole: {}, {}, {} in {}", *run, counted(check.rows, "row"),
                             counted(check.rejects, "reject"), size_text(check.bytes),
                             counted(check.files, "file")));
    else
      print_note(
          "the run does not match its manifest; rerun its job to publish it again, or run it again with "
          "--restart");
  });
}

}  // namespace sheaf

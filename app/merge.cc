#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <memory>

#include "app/commands.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/text/spelling.h"
#include "io/run_folder/merge_shards.h"

namespace sheaf {

void add_merge_command(CLI::App& app, int& exit_code) {
  struct Options {
    std::string out;
    std::vector<std::string> shards;
    bool zero_on_rejects = false;
  };
  auto* command = app.add_subcommand(
      "merge", "Join the finished folders of `sheaf run --shard` into one, in input order");
  auto options = std::make_shared<Options>();
  command->add_option("OUT", options->out, "The folder to create")->type_name("FOLDER")->required();
  command->add_option("SHARD", options->shards, "The shards' folders, in any order")
      ->type_name("FOLDER")
      ->required();
  command->add_flag("--exit-zero-on-rejects", options->zero_on_rejects,
                    "End with exit code 0, not 1, when the shards have rejected records");
  command->callback([options, &exit_code] {
    outlive_readers();
    const Merged merged = merge_shards(real_files(), options->out, options->shards);
    if (!merged.notice.empty()) print_note(merged.notice);
    print_line(fmt::format("{}{} in {}, {} in {}", merged.was_finished ? "already merged: " : "",
                           counted(merged.rows, "row"), counted(merged.files, "file"),
                           counted(merged.rejects, "reject"), options->out));
    if (!flush_output()) forgive_output();  // the result is in the folder
    exit_code = merged.rejects > 0 && !options->zero_on_rejects ? 1 : 0;
  });
}

}  // namespace sheaf

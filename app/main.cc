#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <sstream>

#include "app/command_tree.h"
#include "app/commands.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/base/interrupted.h"
#include "core/base/mistake_list.h"
#include "core/text/spelling.h"
#include "io/base/store.h"
#include "io/machine/machine.h"

namespace sheaf {
namespace {

/// CLI11 would only say that a command is required.
void check_command(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> names = command_names(describe_commands(app));
  if (word.empty()) refuse("give a command: {}; see `sheaf --help`", fmt::join(names, ", "));
  if (word.starts_with('-') || std::ranges::find(names, word) != names.end()) return;
  refuse("unknown command \"{}\"{}", shorten_text(word, 60), suggest_spelling(word, names));
}

bool asks_about_job(const std::vector<const char*>& arguments) {
  return arguments.size() > 2 && arguments[1] == std::string_view("help") &&
         arguments[2] == std::string_view("job");
}

/// `help run` as `run --help`.
std::vector<const char*> read_arguments(int argc, char** argv) {
  std::vector<const char*> arguments(argv, argv + argc);
  if (argc < 2 || std::string_view(argv[1]) != "help" || asks_about_job(arguments)) return arguments;
  arguments.erase(arguments.begin() + 1);
  arguments.push_back("--help");
  return arguments;
}

/// Help or the version, which CLI11 takes for an error without a code.
int print_help(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream text;
  const int exit_code = app.exit(error, text, text);
  print_text(text.str());
  return exit_code;
}

int end_with(Fault fault, const std::string& error) {
  print_error(error);
  return static_cast<int>(fault);
}

/// A result that did not reach a full disk must not look like success.
int finish_output(int exit_code) {
  if (flush_output()) return exit_code;
  return end_with(Fault::fatal,
                  "standard output: part of the result could not be written; is the disk full?");
}

int run_command(CLI::App& app, const std::vector<const char*>& arguments, const int& exit_code) {
  try {
    check_stack();
    if (asks_about_job(arguments)) {
      print_text(job_help(arguments.size() > 3 ? arguments[3] : ""));
      return finish_output(exit_code);
    }
    check_command(app, arguments.size() > 1 ? arguments[1] : "");
    app.parse(static_cast<int>(arguments.size()), arguments.data());
    return finish_output(exit_code);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return finish_output(print_help(app, error));
    return end_with(Fault::input, usage_text(app, error, {arguments.begin() + 1, arguments.end()}));
  } catch (const Mistakes& mistakes) {
    for (const std::string& one : mistakes.all()) print_error(one);
    return finish_output(static_cast<int>(mistakes.fault()));
  } catch (const Error& error) {
    if (error.fault() != Fault::retry || !interrupted) return end_with(error.fault(), error.what());
    print_error("interrupted; rerun the same command to resume");
    return 130;
  } catch (const std::filesystem::filesystem_error& error) {
    return end_with(Fault::input, fmt::format("{}: {}; choose another path", error.path1().string(),
                                              error.code().message()));
  } catch (const std::bad_alloc&) {
    print_error("out of memory; free some memory, or use a machine with more");
    std::_Exit(finish_output(static_cast<int>(Fault::fatal)));  // libraries may not end well without any
  } catch (const std::exception& error) {
    return end_with(Fault::fatal, error.what());
  }
}

/// Arrow's S3 must be ended before main() is.
struct StoresInUse {
  StoresInUse() = default;
  StoresInUse(const StoresInUse&) = delete;
  StoresInUse& operator=(const StoresInUse&) = delete;
  ~StoresInUse() { close_stores(); }
};

}  // namespace
}  // namespace sheaf

int main(int argc, char** argv) {
  using namespace sheaf;
  const StoresInUse stores;
  const std::vector<const char*> arguments = read_arguments(argc, argv);
  hold_standard_streams();
  tell_of_waiting(print_note);
  std::string about = fmt::format("{}\n\n", kAbout);
  for (const FirstCommand& each : kFirstCommands) about += fmt::format("  {:<34}{}\n", each.line, each.about);
  CLI::App app{about};
  app.name("sheaf");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text(), "Show the version and what the program was built with");
  set_up_help(app);
  set_up_signals();
  Program program{app};
  for (const auto add :
       {add_run_command,       add_prefill_command,    add_store_command,      add_merge_command,
        add_plan_command,      add_verify_command,     add_verify_run_command, add_train_data_command,
        add_convert_command,   add_inspect_command,    add_discover_command,   add_export_command,
        add_import_command,    add_tokenize_command,   add_bench_command,      add_estimate_command,
        add_report_command,    add_status_command,     add_show_command,       add_review_command,
        add_score_command,     add_calibrate_command,  add_eval_command,       add_doctor_command,
        add_get_model_command, add_completion_command, add_man_command})
    add(program);
  app.footer("`sheaf COMMAND --help` explains a command, `sheaf help job KEY` a key of a job file.");
  return run_command(app, arguments, program.exit_code);
}

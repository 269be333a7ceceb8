#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <sstream>

#include "app/command_tree.h"
#include "app/commands.h"
#include "app/help.h"
#include "app/job_help.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/interrupted.h"
#include "core/text/spelling.h"
#include "io/base/store.h"
#include "io/machine/version.h"

namespace {

/// CLI11 would only say that a command is required.
void check_command(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> names = sheaf::command_names(sheaf::describe_commands(app));
  if (word.empty()) sheaf::refuse("give a command: {}; see `sheaf --help`", fmt::join(names, ", "));
  if (word.starts_with('-') || std::find(names.begin(), names.end(), word) != names.end()) return;
  sheaf::refuse("unknown command \"{}\"{}", sheaf::shorten_text(word, 60),
                sheaf::suggest_spelling(word, names));
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
  sheaf::print_text(text.str());
  return exit_code;
}

/// A result that did not reach a full disk must not look like success.
int finish_output(int exit_code) {
  if (sheaf::flush_output()) return exit_code;
  sheaf::print_error("standard output: part of the result could not be written; is the disk full?");
  return static_cast<int>(sheaf::Fault::fatal);
}

/// Arrow's S3 must be ended before main() is.
struct StoresInUse {
  StoresInUse() = default;
  StoresInUse(const StoresInUse&) = delete;
  StoresInUse& operator=(const StoresInUse&) = delete;
  ~StoresInUse() { sheaf::close_stores(); }
};

}  // namespace

int main(int argc, char** argv) {
  const StoresInUse stores;
  const std::vector<const char*> arguments = read_arguments(argc, argv);
  sheaf::hold_standard_streams();
  sheaf::tell_of_waiting(sheaf::print_note);
  CLI::App app{
      "Get many answers out of each prompt. sheaf reads a corpus, packs documents and questions into shared "
      "prompts, decodes all answers in parallel and writes one structured row per record.\n\n"
      "  sheaf plan configs/demo.yaml      show what a job would compute, without running it\n"
      "  sheaf run configs/demo.yaml       run it: rows, rejects and a report go to its output folder\n"
      "  sheaf verify configs/demo.yaml    compare the method's answers with one prompt per question\n"};
  app.name("sheaf");
  app.require_subcommand(1);
  app.set_version_flag("--version", sheaf::version_text(),
                       "Show the version and what the program was built with");
  sheaf::set_up_help(app);

  sheaf::set_up_signals();
  int exit_code = 0;
  sheaf::add_run_command(app, exit_code);
  sheaf::add_prefill_command(app, exit_code);
  sheaf::add_store_command(app, exit_code);
  sheaf::add_merge_command(app, exit_code);
  sheaf::add_plan_command(app, exit_code);
  sheaf::add_verify_command(app, exit_code);
  sheaf::add_verify_run_command(app, exit_code);
  sheaf::add_train_data_command(app, exit_code);
  sheaf::add_convert_command(app, exit_code);
  sheaf::add_inspect_command(app);
  sheaf::add_tokenize_command(app);
  sheaf::add_bench_command(app);
  sheaf::add_estimate_command(app);
  sheaf::add_report_command(app);
  sheaf::add_show_command(app);
  sheaf::add_review_command(app);
  sheaf::add_score_command(app);
  sheaf::add_calibrate_command(app);
  sheaf::add_eval_command(app, exit_code);
  sheaf::add_doctor_command(app, exit_code);
  sheaf::add_completion_command(app);
  sheaf::add_man_command(app);
  app.footer("`sheaf COMMAND --help` explains a command, `sheaf help job KEY` a key of a job file.");
  try {
    sheaf::check_stack();
    if (asks_about_job(arguments)) {
      sheaf::print_text(sheaf::job_help(arguments.size() > 3 ? arguments[3] : ""));
      return finish_output(exit_code);
    }
    check_command(app, arguments.size() > 1 ? arguments[1] : "");
    app.parse(static_cast<int>(arguments.size()), arguments.data());
    return finish_output(exit_code);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return finish_output(print_help(app, error));
    sheaf::print_error(sheaf::usage_text(app, error, {arguments.begin() + 1, arguments.end()}));
    return static_cast<int>(sheaf::Fault::input);
  } catch (const sheaf::Error& error) {
    if (error.fault() == sheaf::Fault::retry && sheaf::interrupted) {
      sheaf::print_error("interrupted; rerun the same command to resume");
      return 130;
    }
    sheaf::print_error(error.what());
    return static_cast<int>(error.fault());
  } catch (const std::filesystem::filesystem_error& error) {
    sheaf::print_error(
        fmt::format("{}: {}; choose another path", error.path1().string(), error.code().message()));
    return static_cast<int>(sheaf::Fault::input);
  } catch (const std::bad_alloc&) {
    sheaf::print_error("out of memory; free some memory, or use a machine with more");
    std::_Exit(
        finish_output(static_cast<int>(sheaf::Fault::fatal)));  // libraries may not end well without any
  } catch (const std::exception& error) {
    sheaf::print_error(error.what());
    return static_cast<int>(sheaf::Fault::fatal);
  }
}

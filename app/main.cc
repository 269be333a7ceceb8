#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <new>

#include "app/command_tree.h"
#include "app/commands.h"
#include "app/exit_codes.h"
#include "app/terminal.h"
#include "app/version.h"
#include "core/error.h"
#include "io/spelling.h"

namespace {

std::string footer_text() {
  std::string codes;
  for (const sheaf::ExitCode& exit : sheaf::kExitCodes)
    codes += fmt::format("{}{} {}", codes.empty() ? "" : ", ", exit.code, exit.meaning);
  return fmt::format(
      "Exit codes: {}.\n`sheaf COMMAND --help` explains a command; docs/job.md every key of a job file.",
      codes);
}

/// CLI11 would only say that a command is required.
void check_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const sheaf::CommandFacts& command : sheaf::describe_commands(app)) names.push_back(command.name);
  if (word.starts_with('-') || std::find(names.begin(), names.end(), word) != names.end()) return;
  sheaf::refuse("there is no command \"{}\"{}", sheaf::shorten_text(word, 60),
                sheaf::suggest_spelling(word, names));
}

int print_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string command;
  for (const CLI::App* each : app.get_subcommands()) command += " " + each->get_name();
  sheaf::print_error(fmt::format("{}; `sheaf{} --help` explains", sheaf::one_line(error.what()), command));
  return static_cast<int>(sheaf::Fault::input);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Many answers out of each prompt: reads a corpus, packs documents and questions into shared prompts, "
      "decodes all\n"
      "answers in parallel and writes one structured row per item.\n\n"
      "  sheaf plan configs/demo.yaml      what a job would compute, before it is run\n"
      "  sheaf run configs/demo.yaml       rows, rejects and a report in the job's output folder\n"
      "  sheaf verify configs/demo.yaml    the method's answers against one prompt per question\n"};
  app.name("sheaf");
  app.require_subcommand(1);
  app.set_version_flag("--version", sheaf::version_text(), "What this program was built with");
  app.footer(footer_text());

  int exit_code = 0;
  sheaf::add_run_command(app, exit_code);
  sheaf::add_merge_command(app, exit_code);
  sheaf::add_plan_command(app, exit_code);
  sheaf::add_verify_command(app, exit_code);
  sheaf::add_convert_command(app, exit_code);
  sheaf::add_inspect_command(app);
  sheaf::add_tokenize_command(app);
  sheaf::add_bench_command(app);
  sheaf::add_estimate_command(app);
  sheaf::add_report_command(app);
  sheaf::add_score_command(app);
  sheaf::add_doctor_command(app, exit_code);
  sheaf::add_completion_command(app);
  sheaf::add_man_command(app);
  try {
    if (argc > 1) check_command(app, argv[1]);
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : print_usage_error(app, error);
  } catch (const sheaf::Error& error) {
    sheaf::print_error(error.what());
    return static_cast<int>(error.fault());
  } catch (const std::bad_alloc&) {
    sheaf::print_error("out of memory");
    return static_cast<int>(sheaf::Fault::fatal);
  } catch (const std::exception& error) {
    sheaf::print_error(error.what());
    return static_cast<int>(sheaf::Fault::fatal);
  }
}

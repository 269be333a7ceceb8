#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>

#include "app/commands.h"
#include "app/version.h"
#include "core/error.h"

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
  app.footer(
      "Exit codes: 0 all rows fine, 1 done with rejected rows, 2 usage, configuration or input wrong, 3 "
      "fatal,\n"
      "130 interrupted: the same command goes on. `sheaf COMMAND --help` explains a command; docs/job.md every key of a job file.");

  int exit_code = 0;
  sheaf::add_run_command(app, exit_code);
  sheaf::add_merge_command(app, exit_code);
  sheaf::add_plan_command(app, exit_code);
  sheaf::add_verify_command(app, exit_code);
  sheaf::add_inspect_command(app);
  sheaf::add_tokenize_command(app);
  sheaf::add_bench_command(app);
  sheaf::add_report_command(app);
  sheaf::add_doctor_command(app);
  try {
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(sheaf::Fault::input);
  } catch (const sheaf::Error& error) {
    std::fprintf(stderr, "sheaf: %s\n", error.what());
    return static_cast<int>(error.fault());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "sheaf: out of memory\n");
    return static_cast<int>(sheaf::Fault::fatal);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sheaf: %s\n", error.what());
    return static_cast<int>(sheaf::Fault::fatal);
  }
}

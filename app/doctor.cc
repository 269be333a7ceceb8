#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "app/commands.h"
#include "app/terminal.h"
#include "core/text/spelling.h"
#include "io/machine/machine.h"

namespace sheaf {
namespace {

void print_facts(const std::vector<MachineFact>& facts) {
  int64_t fixes = 0;
  for (const MachineFact& fact : facts) {
    print_line(fmt::format("{:<14} {}", fact.name, fact.text));
    if (fact.fix.empty()) continue;
    ++fixes;
    print_line(fmt::format("{:<14} -> {}", "", fact.fix));
  }
  print_line(fixes == 0 ? "Nothing is missing." : counted(fixes, "thing") + " to fix, marked with ->.");
}

nlohmann::ordered_json facts_json(const std::vector<MachineFact>& facts) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MachineFact& fact : facts)
    list.push_back({{"name", fact.name}, {"text", fact.text}, {"fix", fact.fix}, {"details", fact.details}});
  return list;
}

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_code) {
  struct Options {
    std::string output = ".";
    bool json = false, strict = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("doctor", "Show what this machine offers, and how to fix what is missing");
  command
      ->add_option("OUTPUT", options->output,
                   "The folder that you want to write rows to (default: the current one)")
      ->type_name("FOLDER");
  command->add_flag("--json", options->json, "Print a JSON list of {name, text, fix, details} instead");
  command->add_flag("--strict", options->strict, "Exit with code 1 if there is something to fix");
  command->callback([options, &exit_code] {
    const std::vector<MachineFact> facts = examine_machine(options->output);
    options->json ? print_json(facts_json(facts)) : print_facts(facts);
    const bool fine =
        std::all_of(facts.begin(), facts.end(), [](const MachineFact& fact) { return fact.fix.empty(); });
    exit_code = options->strict && !fine ? 1 : 0;
  });
}

}  // namespace sheaf

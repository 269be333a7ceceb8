#include <algorithm>

#include "app/commands.h"
#include "app/terminal.h"
#include "core/text/spelling.h"
#include "core/text/table.h"
#include "io/machine/machine.h"

namespace sheaf {
namespace {

void print_facts(const std::vector<MachineFact>& facts) {
  int64_t fixes = 0;
  TextTable table;
  for (const MachineFact& fact : facts) {
    table.rows.push_back({fact.name, fact.text});
    if (fact.fix.empty()) continue;
    ++fixes;
    table.rows.push_back({"", "-> " + fact.fix});
  }
  print_text(table.text());
  print_line(fixes == 0 ? "Nothing is missing." : counted(fixes, "thing") + " to fix, marked with ->.");
}

nlohmann::ordered_json facts_json(const std::vector<MachineFact>& facts) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MachineFact& fact : facts)
    list.push_back({{"name", fact.name}, {"text", fact.text}, {"fix", fact.fix}, {"details", fact.details}});
  return list;
}

}  // namespace

void add_doctor_command(Program& program) {
  struct Options {
    std::string output = ".";
    bool json = false, strict = false;
  };
  auto options = std::make_shared<Options>();
  add_command(program, "doctor", "Show what this machine offers, and how to fix what is missing",
              {{"OUTPUT", options->output,
                "The folder that you want to write rows to (default: the current one)", value_name("FOLDER")},
               {"--json", options->json, "Print a JSON list of {name, text, fix, details} instead"},
               {"--strict", options->strict, "Exit with code 1 if there is something to fix"}},
              [options] {
                const std::vector<MachineFact> facts = examine_machine(options->output);
                options->json ? print_json(facts_json(facts)) : print_facts(facts);
                const bool fine =
                    std::ranges::all_of(facts, [](const MachineFact& fact) { return fact.fix.empty(); });
                return options->strict && !fine ? 1 : 0;
              });
}

}  // namespace sheaf

#include "app/command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/ranges.h>
#include <iterator>
#include <sstream>

#include "core/text/wrap.h"

namespace sheaf {
namespace {

/// `bench --profile` in earlier versions.
constexpr std::string_view kOldProfile = "calibrate";

std::vector<std::string> choices_in(const std::string& type) {
  const size_t open = type.find('{'), close = type.find('}', open);
  std::vector<std::string> choices;
  if (close == std::string::npos) return choices;
  std::istringstream list(type.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
  return choices;
}

ArgumentFacts describe_argument(const CLI::Option& option) {
  ArgumentFacts facts;
  for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames())
    (name == kOldProfile ? facts.old_names : facts.names).push_back("--" + name);
  facts.required = option.get_required();
  facts.help = one_line(option.get_description());
  if (option.get_type_size() == 0) return facts;
  facts.repeated = option.get_items_expected_max() > 1;
  facts.least = option.get_items_expected_min();
  const std::string type = option.get_type_name(), base = type.substr(0, type.find(':'));
  if (base.size() < type.size()) facts.wanted = type.substr(base.size() + 1);
  facts.choices = choices_in(type);
  if (!facts.choices.empty()) {
    facts.value = fmt::format("{}", fmt::join(facts.choices, "|"));
    facts.wanted = fmt::format("one of {}", fmt::join(facts.choices, ", "));
  } else if (base == "INT" || base == "UINT" || base == "FLOAT") {
    facts.value = "N";
  } else {
    facts.path = base == "TEXT" || base == "FOLDER" || base == "MODEL";
    facts.value = base == "TEXT" ? "FILE" : base;
  }
  for (int i = 1; i < facts.least; ++i) facts.value += " " + base;
  const bool many = facts.choices.size() > 4;
  if (!facts.choices.empty() && (many || facts.names.empty()))
    facts.help += fmt::format(": {}", fmt::join(facts.choices, ", "));
  if (many) facts.value = "NAME";
  if (facts.names.empty()) facts.value = option.get_name(true);
  if (!option.get_default_str().empty())
    facts.help += fmt::format(" (default: {})", option.get_default_str());
  return facts;
}

}  // namespace

CommandFacts describe_command(const CLI::App& app) {
  CommandFacts facts;
  facts.help = one_line(app.get_description());
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    const ArgumentFacts argument = describe_argument(*option);
    (argument.names.empty() ? facts.operands : facts.options).push_back(argument);
  }
  return facts;
}

std::vector<std::string> ArgumentFacts::all_names() const {
  std::vector<std::string> all = names;
  std::ranges::copy(old_names, std::back_inserter(all));
  return all;
}

std::string ArgumentFacts::usage() const {
  if (!names.empty()) return fmt::format("{}{}{}", fmt::join(names, ", "), value.empty() ? "" : " ", value);
  const std::string word = value + (repeated ? "..." : "");
  return required ? word : "[" + word + "]";
}

std::vector<CommandFacts> describe_commands(const CLI::App& app) {
  std::vector<CommandFacts> all = {describe_command(app)};
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    all.push_back(describe_command(*command));
    all.back().name = command->get_name();
  }
  return all;
}

std::vector<std::string> command_names(const std::vector<CommandFacts>& commands) {
  std::vector<std::string> names;
  for (const CommandFacts& command : commands)
    if (!command.name.empty()) names.push_back(command.name);
  return names;
}

}  // namespace sheaf

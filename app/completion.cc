#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/ranges.h>
#include <memory>

#include "app/command_tree.h"
#include "app/commands.h"
#include "app/option_checks.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/model/shapes.h"
#include "core/text/wrap.h"
#include "io/files/hardware_file.h"
#include "io/files/job_keys.h"

namespace sheaf {
namespace {

/// Words for the value of an option that takes others too.
std::vector<std::string> offers(const CommandFacts& command, const ArgumentFacts& argument) {
  if (argument.value == "KEY=VALUE") {
    std::vector<std::string> keys;
    for (const JobKey& key : job_keys()) keys.push_back(key.path + "=");
    return keys;
  }
  const auto named = [&](const char* name) { return std::ranges::count(argument.names, name) > 0; };
  if (argument.value == "SHAPE" || (command.name == "estimate" && named("--model"))) return shape_names();
  if (named("--hardware")) {
    std::vector<std::string> names;
    try {
      for (const Hardware& each : read_hardware(find_hardware_file()).devices) names.push_back(each.name);
    } catch (const Error&) {  // without a list there is nothing to offer
    }
    return names;
  }
  return argument.choices;
}

/// Lines of a `case` on a key of a job: what it takes behind its "=". `words` and `files` say it to the
/// shell.
std::string key_cases(const std::string& indent, const std::string& words, const std::string& files) {
  std::string cases, paths;
  for (const JobKey& key : job_keys()) {
    if (const std::vector<std::string> known = key.words(); !known.empty())
      cases += fmt::format("{}{}) {}{} ;;\n", indent, key.path,
                           fmt::format(fmt::runtime(words), fmt::join(known, " ")),
                           key.takes.path ? "; " + files : "");
    else if (key.takes.path)
      paths += (paths.empty() ? "" : " | ") + key.path;
  }
  return cases + fmt::format("{}{}) {} ;;\n", indent, paths, files);
}

std::string bash_script(const std::vector<CommandFacts>& commands) {
  const std::string names = fmt::format("{}", fmt::join(command_names(commands), " "));
  std::string values, words;
  for (const CommandFacts& command : commands) {
    std::string options, operands;
    bool files = false;
    for (const ArgumentFacts& argument : command.arguments) {
      if (argument.names.empty()) {
        operands += fmt::format("{} ", fmt::join(argument.choices, " "));
        files |= argument.path;
        continue;
      }
      std::string pattern;
      for (const std::string& name : argument.names) {
        options += name + " ";
        pattern += fmt::format("{}\"{} {}\"", pattern.empty() ? "" : " | ", command.name, name);
      }
      if (argument.value.empty()) continue;
      values += fmt::format("    {}) words=\"{}\" files={} value=1 ;;\n", pattern,
                            fmt::join(offers(command, argument), " "), argument.path ? 1 : 0);
    }
    if (command.name.empty()) operands += names + " help";
    words += fmt::format("    {}) options=\"{}\" words=\"{}\" files={} ;;\n",
                         command.name.empty() ? "\"\"" : command.name, one_line(options), one_line(operands),
                         files ? 1 : 0);
  }
  words += fmt::format("    help) words=\"{} job\" ;;\n", names);
  return "# bash completion for sheaf, written by `sheaf completion bash`\n"
         "_sheaf() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "  local command=\"\" options=\"\" words=\"\" files=0 value=0 i\n"
         "  # bash cuts --option=value into three words, and key=value behind --set.\n"
         "  if [[ $word == \"=\" || $before == \"=\" ]]; then\n"
         "    i=$((COMP_CWORD - 1))\n"
         "    if [[ $word == \"=\" ]]; then word=\"\"; else i=$((COMP_CWORD - 2)); fi\n"
         "    before=${COMP_WORDS[i]}\n"
         "    if [[ ${COMP_WORDS[i - 1]} == --set ]]; then value=2; fi\n"
         "  fi\n"
         "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
         "    if [[ ${COMP_WORDS[i]} != -* ]]; then command=${COMP_WORDS[i]} && break; fi\n"
         "  done\n"
         "  if ((value == 2)); then\n"
         "    case $before in\n" +
         key_cases("      ", "words=\"{}\"", "files=1") +
         "    esac\n"
         "  else\n"
         "    case \"$command $before\" in\n" +
         values +
         "    esac\n"
         "  fi\n"
         "  if ((value == 0)); then\n"
         "    case $command in\n" +
         words +
         "    esac\n"
         "    if [[ $word == -* ]]; then words=$options files=0; fi\n"
         "  fi\n"
         "  if [[ $word == *,* && -n $words ]]; then  # the last of a list\n"
         "    mapfile -t COMPREPLY < <(compgen -P \"${word%,*},\" -W \"$words\" -- \"${word##*,}\")\n"
         "  else\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "  fi\n"
         "  if [[ ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2> /dev/null; fi\n"
         "  if ((files == 1)); then\n"
         "    compopt -o filenames 2> /dev/null\n"
         "    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$word\")\n"
         "  fi\n"
         "}\n"
         "complete -F _sheaf sheaf\n";
}

/// Inside single quotes, with `special` characters behind a backslash.
std::string zsh_quoted(const std::string& text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_value(const CommandFacts& command, const ArgumentFacts& argument) {
  std::string label = argument.value, action;
  const std::vector<std::string> words = offers(command, argument);
  if (!argument.choices.empty()) {
    label = "one of";
    action = fmt::format("({})", fmt::join(argument.choices, " "));
  } else if (argument.value == "KEY=VALUE") {
    action = "_sheaf_key";
  } else if (!words.empty()) {
    action = fmt::format("{{compset -P \"*,\"; compadd -- {}{}}}", fmt::join(words, " "),
                         argument.path ? "; _files" : "");
  } else if (argument.path) {
    action = "_files";
  }
  return fmt::format(":{}:{}", zsh_quoted(label, ":\\"), zsh_quoted(action, ":\\"));
}

std::string zsh_arguments(const CommandFacts& command, const std::string& indent) {
  std::string out;
  for (const ArgumentFacts& option : command.options()) {
    const std::string names = fmt::format("{}", fmt::join(option.names, ","));
    std::string spec = option.repeated ? "'*'" : "";
    if (option.names.size() == 1)
      spec += names;
    else
      spec = fmt::format("'({})'{{{}}}", fmt::join(option.names, " "), names);
    out += fmt::format("{}{}'[{}]{}' \\\n", indent, spec, zsh_quoted(option.help, "[]:\\"),
                       option.value.empty() ? "" : zsh_value(command, option));
  }
  for (const ArgumentFacts& operand : command.operands())
    out += fmt::format("{}'{}{}' \\\n", indent, operand.repeated ? "*" : "", zsh_value(command, operand));
  return out.substr(0, out.size() - 3) + "\n";
}

std::string zsh_script(const std::vector<CommandFacts>& commands) {
  std::string names, cases, keys;
  for (const JobKey& key : job_keys()) keys += key.path + "= ";
  for (const CommandFacts& command : commands) {
    if (command.name.empty()) continue;
    names += fmt::format("        '{}:{}'\n", command.name, zsh_quoted(command.help, "\\"));
    cases += fmt::format("        {})\n          _arguments \\\n{}          ;;\n", command.name,
                         zsh_arguments(command, "            "));
  }
  names += "        'help:Show the help of a command'\n";
  cases += fmt::format("        help)\n          _arguments '1:command:({} job)'\n          ;;\n",
                       fmt::join(command_names(commands), " "));
  std::string own = zsh_arguments(commands[0], "    ");
  own.insert(own.size() - 1, " \\");
  return "#compdef sheaf\n"
         "# zsh completion for sheaf, written by `sheaf completion zsh`\n"
         "_sheaf_key() {\n"
         "  if compset -P '*='; then\n"
         "    case ${${IPREFIX%=}##*=} in\n" +
         key_cases("      ", "compadd -- {}", "_files") +
         "    esac\n"
         "  else\n"
         "    compadd -S '' -- " +
         keys +
         "\n"
         "  fi\n"
         "}\n"
         "_sheaf() {\n"
         "  local context state state_descr line\n"
         "  typeset -A opt_args\n"
         "  _arguments -C \\\n" +
         own +
         "    '1:command:->command' \\\n"
         "    '*::argument:->argument'\n"
         "  case $state in\n"
         "    command)\n"
         "      local -a commands\n"
         "      commands=(\n" +
         names +
         "      )\n"
         "      _describe command commands\n"
         "      ;;\n"
         "    argument)\n"
         "      case $words[1] in\n" +
         cases +
         "      esac\n"
         "      ;;\n"
         "  esac\n"
         "}\n"
         "# Both as a file in $fpath and by `source`.\n"
         "if [[ $funcstack[1] == _sheaf ]]; then _sheaf \"$@\"; else compdef _sheaf sheaf; fi\n";
}

}  // namespace

void add_completion_command(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion", "Print a completion script for your shell: source <(sheaf completion bash)");
  command->add_option("SHELL", *shell, "Which shell")->required()->check(one_of({"bash", "zsh"}));
  command->callback([&app, shell] {
    const std::vector<CommandFacts> commands = describe_commands(app);
    print_text(*shell == "bash" ? bash_script(commands) : zsh_script(commands));
  });
}

}  // namespace sheaf

#include <algorithm>
#include <fmt/ranges.h>

#include "app/command_tree.h"
#include "app/commands.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/model/shapes.h"
#include "core/text/wrap.h"
#include "io/files/hardware_file.h"
#include "io/files/job_keys.h"

namespace sheaf {
namespace {

// In the scripts, @NAME stands for text that depends on the commands.

constexpr const char* kBash = R"(# bash completion for sheaf, written by `sheaf completion bash`
_sheaf() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local command="" options="" words="" files=0 value=0 i
  # bash cuts --option=value into three words, and key=value behind --set.
  if [[ $word == "=" || $before == "=" ]]; then
    i=$((COMP_CWORD - 1))
    if [[ $word == "=" ]]; then word=""; else i=$((COMP_CWORD - 2)); fi
    before=${COMP_WORDS[i]}
    if [[ ${COMP_WORDS[i - 1]} == --set ]]; then value=2; fi
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} != -* ]]; then command=${COMP_WORDS[i]} && break; fi
  done
  if ((value == 2)); then
    case $before in
@KEYS
    esac
  else
    case "$command $before" in
@VALUES
    esac
  fi
  if ((value == 0)); then
    case $command in
@WORDS
    esac
    if [[ $word == -* ]]; then words=$options files=0; fi
  fi
  if [[ $word == *,* && -n $words ]]; then  # the last of a list
    mapfile -t COMPREPLY < <(compgen -P "${word%,*}," -W "$words" -- "${word##*,}")
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  fi
  if [[ ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2> /dev/null; fi
  if ((files == 1)); then
    compopt -o filenames 2> /dev/null
    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -F _sheaf sheaf
)";

constexpr const char* kZsh = R"zsh(#compdef sheaf
# zsh completion for sheaf, written by `sheaf completion zsh`
_sheaf_key() {
  if compset -P '*='; then
    case ${${IPREFIX%=}##*=} in
@KEY_CASES
    esac
  else
    compadd -S '' -- @KEYS
  fi
}
_sheaf() {
  local context state state_descr line
  typeset -A opt_args
  _arguments -C \
@OWN
    '1:command:->command' \
    '*::argument:->argument'
  case $state in
    command)
      local -a commands
      commands=(
@NAMES
      )
      _describe command commands
      ;;
    argument)
      case $words[1] in
@CASES
      esac
      ;;
  esac
}
# Both as a file in $fpath and by `source`.
if [[ $funcstack[1] == _sheaf ]]; then _sheaf "$@"; else compdef _sheaf sheaf; fi
)zsh";

/// The script with texts in the places of their names.
std::string fill(std::string script, std::initializer_list<std::pair<std::string_view, std::string>> texts) {
  for (const auto& [name, text] : texts) script.replace(script.find(name), name.size(), text);
  return script;
}

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
    for (const ArgumentFacts& argument : command.operands) {
      operands += fmt::format("{} ", fmt::join(argument.choices, " "));
      files |= argument.path;
    }
    for (const ArgumentFacts& argument : command.options) {
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
  return fill(kBash, {{"@KEYS\n", key_cases("      ", "words=\"{}\"", "files=1")},
                      {"@VALUES\n", values},
                      {"@WORDS\n", words}});
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
  for (const ArgumentFacts& option : command.options) {
    const std::string names = fmt::format("{}", fmt::join(option.names, ","));
    std::string spec = option.repeated ? "'*'" : "";
    if (option.names.size() == 1)
      spec += names;
    else
      spec = fmt::format("'({})'{{{}}}", fmt::join(option.names, " "), names);
    out += fmt::format("{}{}'[{}]{}' \\\n", indent, spec, zsh_quoted(option.help, "[]:\\"),
                       option.value.empty() ? "" : zsh_value(command, option));
  }
  for (const ArgumentFacts& operand : command.operands)
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
  return fill(kZsh, {{"@KEY_CASES\n", key_cases("      ", "compadd -- {}", "_files")},
                     {"@KEYS", keys},
                     {"@OWN\n", own},
                     {"@NAMES\n", names},
                     {"@CASES\n", cases}});
}

}  // namespace

void add_completion_command(Program& program) {
  auto shell = std::make_shared<std::string>();
  add_command(program, "completion",
              "Print a completion script for your shell: source <(sheaf completion bash)",
              {{"SHELL", *shell, "Which shell", kRequired, one_of({"bash", "zsh"})}}, [&program, shell] {
                const std::vector<CommandFacts> commands = describe_commands(program.app);
                print_text(*shell == "bash" ? bash_script(commands) : zsh_script(commands));
              });
}

}  // namespace sheaf
